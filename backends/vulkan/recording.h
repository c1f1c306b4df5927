// Commands recorded once, to be submitted any number of times: Queue::Submit. Made by a Recorder.
#ifndef TRINE_BACKENDS_VULKAN_RECORDING_H_
#define TRINE_BACKENDS_VULKAN_RECORDING_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/vulkan/device.h"
#include "backends/vulkan/kernel_executor.h"

namespace trine::vulkan {

// How long a step took, or rather how long after the one before it was done.
struct StepTime {
  const char* label;
  double ns;
};

// Must not be destroyed while it is submitted and not done.
class Recording {
 public:
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // One command buffer for each submission, none beyond what the device's watchdog allows.
  size_t parts() const { return parts_.size(); }
  VkCommandBuffer commands(size_t part) const { return parts_[part].commands; }
  size_t barriers() const { return barriers_; }  // between steps; for tests and reports

  // Of the last run, which is done; for a recording made with RecorderOptions::timestamps.
  absl::StatusOr<std::vector<StepTime>> Times() const;

 private:
  friend class Recorder;
  struct Part {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkQueryPool queries = VK_NULL_HANDLE;  // one at the start, one after each step
    std::vector<const char*> labels;       // of its steps
  };
  Recording(Device& device, std::unique_ptr<KernelExecutor> executor)
      : device_(device), executor_(std::move(executor)) {}

  Device& device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::unique_ptr<KernelExecutor> executor_;
  std::vector<Part> parts_;
  size_t barriers_ = 0;
};

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_RECORDING_H_
