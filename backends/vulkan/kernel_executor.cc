#include "backends/vulkan/kernel_executor.h"

#include "backends/vulkan/native_executor.h"

namespace trine::vulkan {

std::unique_ptr<KernelExecutor> MakeKernelExecutor(Executor which, Device& device,
                                                   Pipelines& pipelines) {
#if TRINE_VULKAN_KOMPUTE
  if (which == Executor::kKompute) return MakeKomputeExecutor(device, pipelines);
#endif
  static_cast<void>(which);  // another one is refused where it is chosen: OverrideTuning
  return std::make_unique<NativeExecutor>(device, pipelines);
}

}  // namespace trine::vulkan
