// Vulkan's functions as tables of pointers. libvulkan.so.1 is opened when it is first wanted and
// never linked, so that the plugin loads on machines without it; tests make tables of their own.
//
// Three tables, each a plain struct that may be copied and changed: what can be called without an
// instance, with one, and with a device.
#ifndef TRINE_BACKENDS_VULKAN_LOADER_H_
#define TRINE_BACKENDS_VULKAN_LOADER_H_

#include <vulkan/vulkan.h>

#include "absl/status/statusor.h"

namespace trine::vulkan {

// Functions marked OPTIONAL may be null: they belong to an extension that need not be there.
#define TRINE_VULKAN_GLOBAL_FUNCTIONS(REQUIRED)  \
  REQUIRED(EnumerateInstanceVersion)             \
  REQUIRED(EnumerateInstanceLayerProperties)     \
  REQUIRED(EnumerateInstanceExtensionProperties) \
  REQUIRED(CreateInstance)

#define TRINE_VULKAN_INSTANCE_FUNCTIONS(REQUIRED, OPTIONAL) \
  REQUIRED(DestroyInstance)                                 \
  REQUIRED(EnumeratePhysicalDevices)                        \
  REQUIRED(EnumerateDeviceExtensionProperties)              \
  REQUIRED(GetPhysicalDeviceProperties)                     \
  REQUIRED(GetPhysicalDeviceProperties2)                    \
  REQUIRED(GetPhysicalDeviceFeatures2)                      \
  REQUIRED(GetPhysicalDeviceMemoryProperties2)              \
  REQUIRED(GetPhysicalDeviceQueueFamilyProperties)          \
  REQUIRED(CreateDevice)                                    \
  REQUIRED(GetDeviceProcAddr)                               \
  OPTIONAL(CreateDebugUtilsMessengerEXT)                    \
  OPTIONAL(DestroyDebugUtilsMessengerEXT)

#define TRINE_VULKAN_DEVICE_FUNCTIONS(REQUIRED, OPTIONAL) \
  REQUIRED(DestroyDevice)                                 \
  REQUIRED(GetDeviceQueue)                                \
  REQUIRED(DeviceWaitIdle)                                \
  REQUIRED(AllocateMemory)                                \
  REQUIRED(FreeMemory)                                    \
  REQUIRED(MapMemory)                                     \
  REQUIRED(CreateBuffer)                                  \
  REQUIRED(DestroyBuffer)                                 \
  REQUIRED(GetBufferMemoryRequirements)                   \
  REQUIRED(BindBufferMemory)                              \
  REQUIRED(CreateShaderModule)                            \
  REQUIRED(DestroyShaderModule)                           \
  REQUIRED(CreateDescriptorSetLayout)                     \
  REQUIRED(DestroyDescriptorSetLayout)                    \
  REQUIRED(CreatePipelineLayout)                          \
  REQUIRED(DestroyPipelineLayout)                         \
  REQUIRED(CreatePipelineCache)                           \
  REQUIRED(DestroyPipelineCache)                          \
  REQUIRED(GetPipelineCacheData)                          \
  REQUIRED(CreateComputePipelines)                        \
  REQUIRED(DestroyPipeline)                               \
  REQUIRED(CreateDescriptorPool)                          \
  REQUIRED(DestroyDescriptorPool)                         \
  REQUIRED(AllocateDescriptorSets)                        \
  REQUIRED(UpdateDescriptorSets)                          \
  REQUIRED(CreateCommandPool)                             \
  REQUIRED(DestroyCommandPool)                            \
  REQUIRED(AllocateCommandBuffers)                        \
  REQUIRED(BeginCommandBuffer)                            \
  REQUIRED(EndCommandBuffer)                              \
  REQUIRED(CmdBindPipeline)                               \
  REQUIRED(CmdBindDescriptorSets)                         \
  REQUIRED(CmdPushConstants)                              \
  REQUIRED(CmdDispatch)                                   \
  REQUIRED(CmdDispatchIndirect)                           \
  REQUIRED(CmdCopyBuffer)                                 \
  REQUIRED(CmdFillBuffer)                                 \
  REQUIRED(CmdPipelineBarrier)                            \
  REQUIRED(CmdResetQueryPool)                             \
  REQUIRED(CmdWriteTimestamp)                             \
  REQUIRED(CreateQueryPool)                               \
  REQUIRED(DestroyQueryPool)                              \
  REQUIRED(GetQueryPoolResults)                           \
  REQUIRED(CreateSemaphore)                               \
  REQUIRED(DestroySemaphore)                              \
  REQUIRED(GetSemaphoreCounterValue)                      \
  REQUIRED(WaitSemaphores)                                \
  REQUIRED(QueueSubmit)                                   \
  OPTIONAL(GetMemoryHostPointerPropertiesEXT)

#define TRINE_VULKAN_MEMBER(name) PFN_vk##name name = nullptr;

struct GlobalTable {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
  TRINE_VULKAN_GLOBAL_FUNCTIONS(TRINE_VULKAN_MEMBER)
};
struct InstanceTable {
  TRINE_VULKAN_INSTANCE_FUNCTIONS(TRINE_VULKAN_MEMBER, TRINE_VULKAN_MEMBER)
};
struct DeviceTable {
  TRINE_VULKAN_DEVICE_FUNCTIONS(TRINE_VULKAN_MEMBER, TRINE_VULKAN_MEMBER)
};

#undef TRINE_VULKAN_MEMBER

// Opens libvulkan.so.1, for good. NOT_FOUND where it is not installed.
absl::StatusOr<GlobalTable> LoadVulkan();

// The same through any vkGetInstanceProcAddr. FAILED_PRECONDITION where a required function is
// missing.
absl::StatusOr<GlobalTable> LoadGlobal(PFN_vkGetInstanceProcAddr get);
absl::StatusOr<InstanceTable> LoadInstance(const GlobalTable& global, VkInstance instance);
absl::StatusOr<DeviceTable> LoadDevice(const InstanceTable& functions, VkDevice device);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_LOADER_H_
