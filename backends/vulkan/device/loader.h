// Loads Vulkan's functions into tables of pointers. libvulkan.so.1 is opened on first use and never
// linked, so that the plugin loads on machines without it. Tests make their own tables.
//
// There are three tables: functions that need nothing, functions that need an instance, and
// functions that need a device. Each is a plain struct that may be copied and changed.
#pragma once

#include <vulkan/vulkan.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace trine::vulkan {

// OPTIONAL functions may be null, because they belong to an extension that need not be there.
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
  REQUIRED(CmdCopyBuffer)                                 \
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

// The three tables. A member is named like its function, without "vk".
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

// Opens libvulkan.so.1 and never closes it. Returns NOT_FOUND if it is not installed.
absl::StatusOr<GlobalTable> LoadVulkan();

// Load the functions through any vkGetInstanceProcAddr. Return FAILED_PRECONDITION if a required
// function is missing.
absl::StatusOr<GlobalTable> LoadGlobal(PFN_vkGetInstanceProcAddr get);
absl::StatusOr<InstanceTable> LoadInstance(const GlobalTable& global, VkInstance instance);
absl::StatusOr<DeviceTable> LoadDevice(const InstanceTable& functions, VkDevice device);

// Converts a result to a status: OK for VK_SUCCESS, RESOURCE_EXHAUSTED for lack of memory,
// UNAVAILABLE for a lost device (docs/plugin-abi.md). `what` says what failed: "memory of 12 bytes
// could not be had".
absl::Status VkStatus(VkResult result, const std::string& what);

// Returns the name, such as "VK_ERROR_DEVICE_LOST", or the number of an unknown result.
std::string VkResultName(VkResult result);

// Returns a struct of Vulkan's in which only the type is set.
template <class T>
T Info(VkStructureType type) {
  T info{};
  info.sType = type;
  return info;
}

// Appends `entry` to the chain that `tail` points into.
template <class T>
void Chain(void**& tail, T& entry, VkStructureType type) {
  entry.sType = type;
  entry.pNext = nullptr;
  *tail = &entry;
  tail = &entry.pNext;
}

}  // namespace trine::vulkan
