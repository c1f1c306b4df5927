// Submits recordings to the device's queue. A Recording holds commands that a Recorder records once
// and that are submitted any number of times. A timeline tells how far the queue has got.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/vulkan/device/device.h"
#include "backends/vulkan/exec/kernel_executor.h"

namespace trine::vulkan {

// The time between the end of the previous step and the end of this one.
struct StepTime {
  const char* label;
  double ns;
};

// Commands that can be submitted again and again. Must not be destroyed before its submissions are
// done.
class Recording {
 public:
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // A part is a command buffer with its own submission, short enough for the device's watchdog.
  size_t parts() const { return parts_.size(); }
  VkCommandBuffer commands(size_t part) const { return parts_[part].commands; }
  size_t barriers() const { return barriers_; }  // barriers between steps; for tests and reports

  // Returns the times of the last run, which must be done. REQUIRES: RecorderOptions::timestamps.
  absl::StatusOr<std::vector<StepTime>> Times() const;

 private:
  friend class Recorder;
  struct Part {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkQueryPool queries = VK_NULL_HANDLE;  // one query at the start, one after each step
    std::vector<const char*> labels;       // labels of its steps
  };
  Recording(Device& device, std::unique_ptr<KernelExecutor> executor)
      : device_(device), executor_(std::move(executor)) {}

  Device& device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::unique_ptr<KernelExecutor> executor_;
  std::vector<Part> parts_;
  size_t barriers_ = 0;
};

// Thread-safe; Wait may be called while another thread submits.
class Queue {
 public:
  static absl::StatusOr<std::unique_ptr<Queue>> Create(Device& device);
  ~Queue();  // waits for all submitted work
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Submits a recording. It runs after all earlier work and sees everything that the host has
  // written until this call. Returns the point of the timeline that is reached when it is done. The
  // same recording may be submitted again before that; it then runs again afterwards. If Submit
  // fails, nothing was submitted.
  absl::StatusOr<uint64_t> Submit(const Recording& recording);

  // Returns OK when the point is reached, UNAVAILABLE if the device is lost, and DEADLINE_EXCEEDED
  // when the time is over. After DEADLINE_EXCEEDED nothing has failed: the caller may wait again,
  // or give up with Device::Abandon.
  absl::Status Wait(uint64_t point, uint64_t timeout_ns);

  // Returns the last point that was reached.
  absl::StatusOr<uint64_t> Reached();

 private:
  explicit Queue(Device& device) : device_(device) {}
  void Note(uint64_t point);
  VkResult Poll(uint64_t point, uint64_t timeout_ns);  // vkWaitSemaphores, but needs no memory

  Device& device_;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  std::mutex mutex_;
  uint64_t submitted_ = 0;
  std::atomic<uint64_t> reached_{0};
};

}  // namespace trine::vulkan
