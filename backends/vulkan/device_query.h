// Everything that is asked of a physical device, as the driver answers it. What it means is
// device_caps.h's; tests fill these structs by hand.
#ifndef TRINE_BACKENDS_VULKAN_DEVICE_QUERY_H_
#define TRINE_BACKENDS_VULKAN_DEVICE_QUERY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/vulkan/loader.h"

namespace trine::vulkan {

// The structs' pNext members mean nothing here.
struct DeviceQuery {
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceVulkan11Properties properties11{};
  VkPhysicalDeviceVulkan12Properties properties12{};
  VkPhysicalDeviceSubgroupSizeControlProperties subgroup_sizes{};
  VkPhysicalDeviceShaderIntegerDotProductProperties int_dot{};
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host_import{};
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci{};

  VkPhysicalDeviceFeatures features{};
  VkPhysicalDeviceVulkan11Features features11{};
  VkPhysicalDeviceVulkan12Features features12{};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size_features{};
  VkPhysicalDeviceShaderIntegerDotProductFeatures int_dot_features{};

  VkPhysicalDeviceMemoryProperties memory{};
  std::vector<VkQueueFamilyProperties> queue_families;
  std::vector<std::string> extensions;

  bool Has(const char* extension) const;
};

// A device older than Vulkan 1.2 is asked for its properties alone. What the device can do beyond
// the version that the instance was made for is not to be used but by extensions: the version in
// the properties is no higher than that.
absl::StatusOr<DeviceQuery> QueryDevice(const InstanceTable& functions, VkPhysicalDevice device,
                                        uint32_t instance_version);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_DEVICE_QUERY_H_
