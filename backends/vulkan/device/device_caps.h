// Describes a physical device. DeviceQuery holds all of a driver's answers. DeviceCaps holds what
// the device can do, as far as this backend needs it. It is a pure function of the answers, which
// tests fill in by hand.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/vulkan/device/loader.h"
#include "kernels/vulkan/spirv/shader.h"

namespace trine::vulkan {

// The pNext members of the structs are meaningless here.
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

// Asks a device older than Vulkan 1.2 for its properties only. The version in the properties is at
// most `instance_version`: features of later versions may be used only through extensions.
absl::StatusOr<DeviceQuery> QueryDevice(const InstanceTable& functions, VkPhysicalDevice device,
                                        uint32_t instance_version);

// Derived from properties, never from names, because a driver may print any name. ArchitectureName
// has the names in this order.
enum class Architecture {
  kOther,
  kIntelXe1,
  kIntelXe2,
  kIntelOther,
  kAmdGcn,
  kAmdRdna,   // RDNA 1 and 2
  kAmdRdna3,  // RDNA 3 and later
  kNvidia,
  kSoftware,
};
const char* ArchitectureName(Architecture architecture);

enum class DeviceKind { kIntegrated, kDiscrete, kCpu, kOther };

struct DeviceCaps {
  std::string name;
  std::string driver;  // name and version, for people and for calibration keys
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
  uint32_t driver_id = 0;  // VkDriverId
  uint32_t driver_version = 0;
  uint32_t api_version = 0;  // the version that may be used: at most the instance's
  std::array<uint8_t, 16> uuid{};
  std::array<uint8_t, 16> pipeline_cache_uuid{};
  std::string pci_id;  // "0000:01:00.0"; "" if the driver does not say
  DeviceKind kind = DeviceKind::kOther;
  Architecture architecture = Architecture::kOther;
  bool unified_memory = false;

  // Arithmetic. A device that does not round to nearest even is not exact: it can't run the shaders
  // that compute floats.
  bool rounds_to_nearest_even = false;
  bool int8 = false, int16 = false, int64 = false, float16 = false;
  bool storage8 = false, storage16 = false;
  bool int_dot = false;              // OpSDot over four packed bytes compiles
  bool int_dot_accelerated = false;  // OpSDot also takes one instruction

  // Subgroups. If the size can't be chosen, min and max are the driver's own size.
  uint32_t subgroup_size = 0;
  uint32_t min_subgroup_size = 0;
  uint32_t max_subgroup_size = 0;
  bool can_require_subgroup_size = false;  // with full subgroups
  uint32_t max_workgroup_subgroups = 0;    // the most in a workgroup whose pipeline requires a size
  VkSubgroupFeatureFlags subgroup_operations = 0;

  // Limits.
  uint64_t max_storage_range = 0;  // size of one binding
  uint64_t max_allocation = 0;
  uint32_t storage_alignment = 1;  // alignment of a binding's offset
  uint32_t max_shared_bytes = 0;
  uint32_t max_workgroup_invocations = 0;
  std::array<uint32_t, 3> max_workgroup_size{};
  std::array<uint32_t, 3> max_workgroups{};

  // Memory.
  VkPhysicalDeviceMemoryProperties memory{};
  bool memory_budget = false;     // the driver reports how much is free
  uint64_t import_alignment = 0;  // 0: host memory can't be imported

  // The queue family that is used, and its timestamps. With 0 bits it has no timestamps.
  uint32_t queue_family = 0;
  uint32_t timestamp_bits = 0;
  double timestamp_ns = 0;

  // "" if the device can be used, else one sentence that names everything that it lacks.
  std::string unusable;

  // Returns the size of the device's own heaps, or of all heaps if it has none of its own.
  uint64_t HeapBytes() const;
};

// Derives the abilities from a driver's answers. A pure function.
DeviceCaps MakeDeviceCaps(const DeviceQuery& query);

// Returns the capabilities that the shader needs and the device lacks, or "" if it lacks none.
std::string MissingForShader(const DeviceCaps& caps, const Shader& shader);

}  // namespace trine::vulkan
