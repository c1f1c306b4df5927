#include "backends/vulkan/device/device_caps.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "backends/vulkan/device/loader.h"

namespace trine::vulkan {
namespace {

constexpr uint32_t kIntel = 0x8086, kAmd = 0x1002, kNvidiaVendor = 0x10de;

DeviceKind KindOf(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return DeviceKind::kIntegrated;
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return DeviceKind::kDiscrete;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return DeviceKind::kCpu;
    default:
      return DeviceKind::kOther;
  }
}

Architecture ArchitectureOf(const DeviceCaps& caps, const DeviceQuery& query) {
  if (caps.kind == DeviceKind::kCpu) return Architecture::kSoftware;
  const uint32_t smallest = caps.min_subgroup_size, largest = caps.max_subgroup_size;
  if (caps.vendor_id == kNvidiaVendor) return Architecture::kNvidia;
  if (caps.vendor_id == kAmd) {
    if (smallest == 64 && largest == 64) return Architecture::kAmdGcn;
    if (smallest != 32 || largest != 64) return Architecture::kOther;
    const bool mixed = query.int_dot.integerDotProduct4x8BitPackedMixedSignednessAccelerated != 0;
    return mixed ? Architecture::kAmdRdna3 : Architecture::kAmdRdna;
  }
  if (caps.vendor_id == kIntel) {
    if (smallest == 16) return Architecture::kIntelXe2;
    if (smallest == 8 && caps.int_dot_accelerated) return Architecture::kIntelXe1;
    return Architecture::kIntelOther;
  }
  return Architecture::kOther;
}

// Returns whether a GPU has no memory of its own: then the host shares all of its heaps.
bool Unified(const DeviceCaps& caps) {
  return caps.kind == DeviceKind::kIntegrated || caps.kind == DeviceKind::kCpu;
}

void TakeIdentity(const DeviceQuery& query, DeviceCaps* caps) {
  const VkPhysicalDeviceProperties& p = query.properties;
  caps->name = p.deviceName;
  caps->vendor_id = p.vendorID;
  caps->device_id = p.deviceID;
  caps->driver_version = p.driverVersion;
  caps->api_version = p.apiVersion;
  caps->kind = KindOf(p.deviceType);
  caps->driver_id = query.properties12.driverID;
  caps->driver = query.properties12.driverName;
  if (query.properties12.driverInfo[0] != '\0') {
    absl::StrAppend(&caps->driver, " ", query.properties12.driverInfo);
  }
  std::copy_n(query.properties11.deviceUUID, caps->uuid.size(), caps->uuid.begin());
  std::copy_n(p.pipelineCacheUUID, caps->pipeline_cache_uuid.size(),
              caps->pipeline_cache_uuid.begin());
  if (query.Has(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME)) {
    caps->pci_id = absl::StrFormat("%04x:%02x:%02x.%x", query.pci.pciDomain, query.pci.pciBus,
                                   query.pci.pciDevice, query.pci.pciFunction);
  }
}

void TakeArithmetic(const DeviceQuery& query, DeviceCaps* caps) {
  caps->rounds_to_nearest_even = query.properties12.shaderRoundingModeRTEFloat32 != 0;
  caps->int8 = query.features12.shaderInt8 != 0;
  caps->int16 = query.features.shaderInt16 != 0;
  caps->int64 = query.features.shaderInt64 != 0;
  caps->float16 = query.features12.shaderFloat16 != 0;
  caps->storage8 = query.features12.storageBuffer8BitAccess != 0;
  caps->storage16 = query.features11.storageBuffer16BitAccess != 0;
  caps->int_dot = query.int_dot_features.shaderIntegerDotProduct != 0;
  caps->int_dot_accelerated =
      caps->int_dot && query.int_dot.integerDotProduct4x8BitPackedSignedAccelerated != 0;
}

void TakeSubgroups(const DeviceQuery& query, DeviceCaps* caps) {
  caps->subgroup_size = query.properties11.subgroupSize;
  if ((query.properties11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0) {
    caps->subgroup_operations = query.properties11.subgroupSupportedOperations;
  }
  caps->min_subgroup_size = caps->max_subgroup_size = caps->subgroup_size;
  const bool sizes = query.subgroup_size_features.subgroupSizeControl != 0 &&
                     query.subgroup_sizes.minSubgroupSize != 0;
  if (!sizes) return;
  caps->min_subgroup_size = query.subgroup_sizes.minSubgroupSize;
  caps->max_subgroup_size = query.subgroup_sizes.maxSubgroupSize;
  caps->max_workgroup_subgroups = query.subgroup_sizes.maxComputeWorkgroupSubgroups;
  caps->can_require_subgroup_size =
      query.subgroup_size_features.computeFullSubgroups != 0 &&
      (query.subgroup_sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
}

void TakeLimits(const DeviceQuery& query, DeviceCaps* caps) {
  const VkPhysicalDeviceLimits& limits = query.properties.limits;
  caps->max_storage_range = limits.maxStorageBufferRange;
  caps->max_allocation = query.properties11.maxMemoryAllocationSize;
  caps->storage_alignment =
      static_cast<uint32_t>(std::max<VkDeviceSize>(limits.minStorageBufferOffsetAlignment, 4));
  caps->max_shared_bytes = limits.maxComputeSharedMemorySize;
  caps->max_workgroup_invocations = limits.maxComputeWorkGroupInvocations;
  std::copy_n(limits.maxComputeWorkGroupSize, 3, caps->max_workgroup_size.begin());
  std::copy_n(limits.maxComputeWorkGroupCount, 3, caps->max_workgroups.begin());
  caps->timestamp_ns = limits.timestampPeriod;
}

void TakeMemory(const DeviceQuery& query, DeviceCaps* caps) {
  caps->memory = query.memory;
  caps->memory_budget = query.Has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  if (query.Has(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) {
    caps->import_alignment = query.host_import.minImportedHostPointerAlignment;
  }
}

// Takes the first family that computes, because every driver lists its best family first.
bool TakeQueue(const DeviceQuery& query, DeviceCaps* caps) {
  for (uint32_t i = 0; i < query.queue_families.size(); ++i) {
    if ((query.queue_families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    caps->queue_family = i;
    caps->timestamp_bits = query.queue_families[i].timestampValidBits;
    return true;
  }
  return false;
}

std::string Unusable(const DeviceQuery& query, const DeviceCaps& caps, bool has_queue) {
  if (caps.api_version < VK_API_VERSION_1_2) {
    return absl::StrCat(caps.name, " offers Vulkan ", VK_API_VERSION_MAJOR(caps.api_version), ".",
                        VK_API_VERSION_MINOR(caps.api_version), "; 1.2 is needed");
  }
  std::vector<std::string> lacks;
  if (!has_queue) lacks.push_back("a queue that computes");
  if (!query.features12.timelineSemaphore) lacks.push_back("timeline semaphores");
  if (!caps.storage16) lacks.push_back("16-bit storage");
  if ((caps.subgroup_operations & VK_SUBGROUP_FEATURE_BASIC_BIT) == 0) {
    lacks.push_back("subgroups in compute shaders");
  }
  const VkPhysicalDeviceLimits& limits = query.properties.limits;
  if (limits.maxPerStageDescriptorStorageBuffers < kMaxShaderBindings) {
    lacks.push_back(absl::StrCat(kMaxShaderBindings, " storage buffers in a shader"));
  }
  if (limits.maxPushConstantsSize < kMaxPushBytes) {
    lacks.push_back(absl::StrCat(kMaxPushBytes, " bytes of push constants"));
  }
  return lacks.empty() ? "" : absl::StrCat(caps.name, " lacks ", absl::StrJoin(lacks, ", "));
}

// Returns the name of the feature that a SPIR-V capability needs and the device lacks, or null if
// it lacks none. Knows the capabilities that shaders of this project may have.
const char* MissingCapability(const DeviceCaps& caps, uint32_t capability) {
  const auto subgroup = [&](VkSubgroupFeatureFlagBits bit) {
    return (caps.subgroup_operations & bit) != 0;
  };
  switch (capability) {
    case 1:  // Shader
      return nullptr;
    case 9:  // Float16
      return caps.float16 ? nullptr : "half float arithmetic";
    case 11:  // Int64
      return caps.int64 ? nullptr : "64-bit integers";
    case 22:  // Int16
      return caps.int16 ? nullptr : "16-bit integers";
    case 39:  // Int8
      return caps.int8 ? nullptr : "8-bit integers";
    case 61:  // GroupNonUniform
      return subgroup(VK_SUBGROUP_FEATURE_BASIC_BIT) ? nullptr : "subgroups";
    case 62:  // GroupNonUniformVote
      return subgroup(VK_SUBGROUP_FEATURE_VOTE_BIT) ? nullptr : "subgroup votes";
    case 63:  // GroupNonUniformArithmetic
      return subgroup(VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) ? nullptr : "subgroup arithmetic";
    case 64:  // GroupNonUniformBallot
      return subgroup(VK_SUBGROUP_FEATURE_BALLOT_BIT) ? nullptr : "subgroup ballots";
    case 65:  // GroupNonUniformShuffle
      return subgroup(VK_SUBGROUP_FEATURE_SHUFFLE_BIT) ? nullptr : "subgroup shuffles";
    case 66:  // GroupNonUniformShuffleRelative
      return subgroup(VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT) ? nullptr : "subgroup shuffles";
    case 4433:  // StorageBuffer16BitAccess
      return caps.storage16 ? nullptr : "16-bit storage";
    case 4448:  // StorageBuffer8BitAccess
      return caps.storage8 ? nullptr : "8-bit storage";
    case 4467:  // RoundingModeRTE
      return caps.rounds_to_nearest_even ? nullptr : "rounding to nearest even";
    case 6018:  // DotProductInput4x8BitPacked
    case 6019:  // DotProduct
      return caps.int_dot ? nullptr : "integer dot products";
    default:
      return "a capability that the backend does not know of";
  }
}

absl::Status QueryExtensions(const InstanceTable& functions, VkPhysicalDevice device,
                             DeviceQuery* query) {
  std::vector<VkExtensionProperties> found;
  VkResult result = VK_INCOMPLETE;
  while (result == VK_INCOMPLETE) {  // the number may grow between the two calls
    uint32_t count = 0;
    result = functions.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
    if (result != VK_SUCCESS) break;
    found.resize(count);
    result = functions.EnumerateDeviceExtensionProperties(device, nullptr, &count, found.data());
    found.resize(count);
  }
  if (result != VK_SUCCESS) {
    return VkStatus(result, absl::StrCat("the extensions of ", query->properties.deviceName,
                                         " could not be listed"));
  }
  for (const VkExtensionProperties& extension : found) {
    query->extensions.emplace_back(extension.extensionName);
  }
  return absl::OkStatus();
}

void QueryProperties(const InstanceTable& functions, VkPhysicalDevice device, DeviceQuery* q) {
  const bool v13 = q->properties.apiVersion >= VK_API_VERSION_1_3;
  auto top = Info<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  void** tail = &top.pNext;
  Chain(tail, q->properties11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
  Chain(tail, q->properties12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
  if (v13 || q->Has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) {
    Chain(tail, q->subgroup_sizes,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
  }
  if (v13 || q->Has(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME)) {
    Chain(tail, q->int_dot,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES);
  }
  if (q->Has(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) {
    Chain(tail, q->host_import,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT);
  }
  if (q->Has(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME)) {
    Chain(tail, q->pci, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT);
  }
  functions.GetPhysicalDeviceProperties2(device, &top);
}

void QueryFeatures(const InstanceTable& functions, VkPhysicalDevice device, DeviceQuery* q) {
  const bool v13 = q->properties.apiVersion >= VK_API_VERSION_1_3;
  auto top = Info<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  void** tail = &top.pNext;
  Chain(tail, q->features11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
  Chain(tail, q->features12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  if (v13 || q->Has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) {
    Chain(tail, q->subgroup_size_features,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
  }
  if (v13 || q->Has(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME)) {
    Chain(tail, q->int_dot_features,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES);
  }
  functions.GetPhysicalDeviceFeatures2(device, &top);
  q->features = top.features;
}

}  // namespace

const char* ArchitectureName(Architecture architecture) {
  static constexpr const char* kNames[] = {"other",     "intel-xe1", "intel-xe2",
                                           "intel",     "amd-gcn",   "amd-rdna",
                                           "amd-rdna3", "nvidia",    "software"};
  return kNames[static_cast<size_t>(architecture)];
}

uint64_t DeviceCaps::HeapBytes() const {
  uint64_t own = 0, all = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    all += memory.memoryHeaps[i].size;
    if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) {
      own += memory.memoryHeaps[i].size;
    }
  }
  return own != 0 ? own : all;
}

DeviceCaps MakeDeviceCaps(const DeviceQuery& query) {
  DeviceCaps caps;
  TakeIdentity(query, &caps);
  TakeArithmetic(query, &caps);
  TakeSubgroups(query, &caps);
  TakeLimits(query, &caps);
  TakeMemory(query, &caps);
  const bool has_queue = TakeQueue(query, &caps);
  caps.architecture = ArchitectureOf(caps, query);
  caps.unified_memory = Unified(caps);
  caps.unusable = Unusable(query, caps, has_queue);
  return caps;
}

std::string MissingForShader(const DeviceCaps& caps, const Shader& shader) {
  for (uint32_t i = 0; i < shader.capability_count; ++i) {
    const char* missing = MissingCapability(caps, shader.capabilities[i]);
    if (missing != nullptr) {
      return absl::StrCat(caps.name, " lacks ", missing, ", which shader ", shader.name, " needs");
    }
  }
  return "";
}

bool DeviceQuery::Has(const char* extension) const {
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

absl::StatusOr<DeviceQuery> QueryDevice(const InstanceTable& functions, VkPhysicalDevice device,
                                        uint32_t instance_version) {
  DeviceQuery query;
  functions.GetPhysicalDeviceProperties(device, &query.properties);
  query.properties.apiVersion = std::min(query.properties.apiVersion, instance_version);
  if (query.properties.apiVersion < VK_API_VERSION_1_2) return query;
  if (absl::Status status = QueryExtensions(functions, device, &query); !status.ok()) return status;
  QueryProperties(functions, device, &query);
  QueryFeatures(functions, device, &query);
  auto memory = Info<VkPhysicalDeviceMemoryProperties2>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2);
  functions.GetPhysicalDeviceMemoryProperties2(device, &memory);
  query.memory = memory.memoryProperties;
  uint32_t count = 0;
  functions.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  query.queue_families.resize(count);
  functions.GetPhysicalDeviceQueueFamilyProperties(device, &count, query.queue_families.data());
  return query;
}

}  // namespace trine::vulkan
