// Kernels through our own pipelines and descriptor sets. Every build has it, and all that another
// executor can do it can.
#ifndef TRINE_BACKENDS_VULKAN_NATIVE_EXECUTOR_H_
#define TRINE_BACKENDS_VULKAN_NATIVE_EXECUTOR_H_

#include <vector>

#include "absl/status/statusor.h"
#include "backends/vulkan/kernel_executor.h"

namespace trine::vulkan {

class NativeExecutor : public KernelExecutor {
 public:
  NativeExecutor(Device& device, Pipelines& pipelines) : device_(device), pipelines_(pipelines) {}
  ~NativeExecutor() override;

  void Begin(VkCommandBuffer commands) override;
  absl::Status Prepare(const Dispatch& dispatch) override;
  void Record(const Dispatch& dispatch) override;

 private:
  absl::StatusOr<VkDescriptorSet> MakeSet(const std::vector<Binding>& buffers);

  Device& device_;
  Pipelines& pipelines_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  Pipeline prepared_;
  VkDescriptorSet prepared_set_ = VK_NULL_HANDLE;
  VkPipeline bound_ = VK_NULL_HANDLE;
  std::vector<VkDescriptorPool> pools_;
  uint32_t sets_left_ = 0, descriptors_left_ = 0;  // in the newest pool
};

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_NATIVE_EXECUTOR_H_
