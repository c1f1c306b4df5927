// What a device can do, as far as this backend cares: a pure function of what its driver says.
#ifndef TRINE_BACKENDS_VULKAN_DEVICE_CAPS_H_
#define TRINE_BACKENDS_VULKAN_DEVICE_CAPS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/vulkan/device_query.h"
#include "kernels/vulkan/shader.h"

namespace trine::vulkan {

// Told by properties, never by names: a name is whatever a driver prints.
enum class Architecture {
  kOther,
  kIntelXe1,
  kIntelXe2,
  kIntelOther,
  kAmdGcn,
  kAmdRdna,   // 1 and 2
  kAmdRdna3,  // and later
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
  uint32_t api_version = 0;  // that may be used: no higher than the instance's
  std::array<uint8_t, 16> uuid{};
  std::array<uint8_t, 16> pipeline_cache_uuid{};
  std::string pci_id;  // "0000:01:00.0", or "" where the driver does not say
  DeviceKind kind = DeviceKind::kOther;
  Architecture architecture = Architecture::kOther;
  bool unified_memory = false;

  // Arithmetic. A shader that computes floats asks for the first; without it the device is not
  // exact.
  bool rounds_to_nearest_even = false;
  bool int8 = false, int16 = false, int64 = false, float16 = false;
  bool storage8 = false, storage16 = false;
  bool int_dot = false;              // OpSDot over four packed bytes compiles
  bool int_dot_accelerated = false;  // and is one instruction

  // Subgroups. min == max == the driver's own size where it can't be chosen.
  uint32_t subgroup_size = 0;
  uint32_t min_subgroup_size = 0;
  uint32_t max_subgroup_size = 0;
  bool can_require_subgroup_size = false;  // with full subgroups
  uint32_t max_workgroup_subgroups = 0;    // of a pipeline that requires a size
  VkSubgroupFeatureFlags subgroup_operations = 0;

  // Limits.
  uint64_t max_storage_range = 0;  // of one binding
  uint64_t max_allocation = 0;
  uint32_t max_allocations = 0;
  uint32_t storage_alignment = 1;  // of a binding's offset
  uint32_t max_shared_bytes = 0;
  uint32_t max_workgroup_invocations = 0;
  std::array<uint32_t, 3> max_workgroup_size{};
  std::array<uint32_t, 3> max_workgroups{};

  // Memory.
  VkPhysicalDeviceMemoryProperties memory{};
  bool memory_budget = false;     // the driver tells what is free
  uint64_t import_alignment = 0;  // 0: host memory can't be imported

  // The queue that is used, and how its timestamps count. 0 bits: none.
  uint32_t queue_family = 0;
  uint32_t timestamp_bits = 0;
  double timestamp_ns = 0;

  // Empty: the device can be used. Else one sentence that names all that it lacks.
  std::string unusable;

  // Bytes of the device's own heaps, or of all where it has none.
  uint64_t HeapBytes() const;
};

DeviceCaps MakeDeviceCaps(const DeviceQuery& query);

// "" where the device has all that the shader declares, else what it lacks.
std::string MissingForShader(const DeviceCaps& caps, const Shader& shader);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_DEVICE_CAPS_H_
