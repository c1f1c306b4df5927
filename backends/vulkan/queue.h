// The device's queue: recordings go in, one timeline tells how far they are.
#ifndef TRINE_BACKENDS_VULKAN_QUEUE_H_
#define TRINE_BACKENDS_VULKAN_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/vulkan/device.h"
#include "backends/vulkan/recording.h"

namespace trine::vulkan {

// Thread-safe; Wait may be called while another thread submits.
class Queue {
 public:
  static absl::StatusOr<std::unique_ptr<Queue>> Create(Device& device);
  ~Queue();  // waits for what was submitted
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Runs after all that was submitted before, and sees what the host has written until now. Returns
  // the point that is reached when it is done. A recording may be submitted again before that; it
  // then runs after itself. A failure has submitted nothing.
  absl::StatusOr<uint64_t> Submit(const Recording& recording);

  // OK when the point is reached. DEADLINE_EXCEEDED when it is not in time: nothing has failed, and
  // one may wait on, or give the device up with Device::Abandon. UNAVAILABLE when the device is
  // lost.
  absl::Status Wait(uint64_t point, uint64_t timeout_ns);

  // The last point reached.
  absl::StatusOr<uint64_t> Reached();

 private:
  explicit Queue(Device& device) : device_(device) {}
  void Note(uint64_t point);
  VkResult Poll(uint64_t point, uint64_t timeout_ns);  // as vkWaitSemaphores, without its needs

  Device& device_;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  std::mutex mutex_;
  uint64_t submitted_ = 0;
  std::atomic<uint64_t> reached_{0};
};

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_QUEUE_H_
