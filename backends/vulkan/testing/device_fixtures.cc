#include "backends/vulkan/testing/device_fixtures.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace trine::vulkan::testing {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kVisible =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

// The answers that all these devices have in common.
DeviceQuery Base(const char* name, uint32_t vendor, VkPhysicalDeviceType type, VkDriverId driver,
                 const char* driver_name) {
  DeviceQuery q;
  std::snprintf(q.properties.deviceName, sizeof(q.properties.deviceName), "%s", name);
  std::snprintf(q.properties12.driverName, sizeof(q.properties12.driverName), "%s", driver_name);
  q.properties.vendorID = vendor;
  q.properties.deviceType = type;
  q.properties.apiVersion = VK_API_VERSION_1_3;
  q.properties12.driverID = driver;
  std::memset(q.properties11.deviceUUID, static_cast<int>(vendor & 0x7f), VK_UUID_SIZE);
  VkPhysicalDeviceLimits& limits = q.properties.limits;
  limits.maxStorageBufferRange = UINT32_MAX;
  limits.maxMemoryAllocationCount = 4096;
  limits.minStorageBufferOffsetAlignment = 16;
  limits.maxComputeSharedMemorySize = 65536;
  limits.maxComputeWorkGroupInvocations = 1024;
  std::fill_n(limits.maxComputeWorkGroupSize, 3, 1024);
  std::fill_n(limits.maxComputeWorkGroupCount, 3, 65535);
  limits.maxPushConstantsSize = 256;
  limits.maxPerStageDescriptorStorageBuffers = 1 << 16;
  limits.timestampPeriod = 10;
  q.properties11.maxMemoryAllocationSize = 4 * kGiB;
  q.properties11.subgroupSupportedStages = VK_SHADER_STAGE_COMPUTE_BIT;
  q.properties11.subgroupSupportedOperations =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT |
      VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT |
      VK_SUBGROUP_FEATURE_SHUFFLE_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT;
  q.properties12.shaderRoundingModeRTEFloat32 = VK_TRUE;
  q.features.shaderInt16 = q.features.shaderInt64 = VK_TRUE;
  q.features11.storageBuffer16BitAccess = VK_TRUE;
  q.features12.storageBuffer8BitAccess = q.features12.shaderInt8 = VK_TRUE;
  q.features12.shaderFloat16 = q.features12.timelineSemaphore = VK_TRUE;
  q.int_dot_features.shaderIntegerDotProduct = VK_TRUE;
  q.queue_families.push_back(
      {VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 1, 64, {1, 1, 1}});
  q.host_import.minImportedHostPointerAlignment = 4096;
  q.extensions = {VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME,
                  VK_EXT_PCI_BUS_INFO_EXTENSION_NAME};
  return q;
}

void SetSubgroups(DeviceQuery* q, uint32_t usual, uint32_t smallest, uint32_t largest) {
  q->properties11.subgroupSize = usual;
  q->subgroup_sizes.minSubgroupSize = smallest;
  q->subgroup_sizes.maxSubgroupSize = largest;
  q->subgroup_sizes.maxComputeWorkgroupSubgroups = 1024 / smallest;
  q->subgroup_sizes.requiredSubgroupSizeStages = VK_SHADER_STAGE_COMPUTE_BIT;
  q->subgroup_size_features.subgroupSizeControl = VK_TRUE;
  q->subgroup_size_features.computeFullSubgroups = VK_TRUE;
}

void AddHeap(DeviceQuery* q, uint64_t bytes, bool local,
             std::initializer_list<VkMemoryPropertyFlags> types) {
  const uint32_t heap = q->memory.memoryHeapCount++;
  q->memory.memoryHeaps[heap] = {
      bytes, local ? VkMemoryHeapFlags{VK_MEMORY_HEAP_DEVICE_LOCAL_BIT} : VkMemoryHeapFlags{0}};
  for (const VkMemoryPropertyFlags flags : types) {
    q->memory.memoryTypes[q->memory.memoryTypeCount++] = {flags, heap};
  }
}

void AccelerateIntDot(DeviceQuery* q, bool mixed) {
  q->int_dot.integerDotProduct4x8BitPackedSignedAccelerated = VK_TRUE;
  q->int_dot.integerDotProduct4x8BitPackedMixedSignednessAccelerated = mixed;
}

}  // namespace

DeviceQuery IntelXe1() {
  DeviceQuery q =
      Base("Intel(R) Xe Graphics (TGL GT2)", 0x8086, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
           VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA, "Intel open-source Mesa driver");
  SetSubgroups(&q, 32, 8, 32);
  AccelerateIntDot(&q, true);
  q.properties.limits.maxStorageBufferRange = 1 << 30;
  AddHeap(&q, 12 * kGiB, true, {kLocal | kVisible, kLocal | kVisible | kCached});
  return q;
}

DeviceQuery IntelXe2() {
  DeviceQuery q = IntelXe1();
  std::snprintf(q.properties.deviceName, sizeof(q.properties.deviceName),
                "Intel(R) Arc 140V (LNL)");
  SetSubgroups(&q, 32, 16, 32);
  return q;
}

DeviceQuery AmdRdna2Apu() {
  DeviceQuery q = Base("AMD Radeon Graphics (RADV REMBRANDT)", 0x1002,
                       VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, VK_DRIVER_ID_MESA_RADV, "radv");
  SetSubgroups(&q, 64, 32, 64);
  AccelerateIntDot(&q, false);
  AddHeap(&q, 4 * kGiB, false, {kVisible, kVisible | kCached});
  AddHeap(&q, 8 * kGiB, true, {kLocal, kLocal | kVisible});
  return q;
}

DeviceQuery AmdRdna3Apu() {
  DeviceQuery q = AmdRdna2Apu();
  std::snprintf(q.properties.deviceName, sizeof(q.properties.deviceName),
                "AMD Radeon 780M (RADV PHOENIX)");
  AccelerateIntDot(&q, true);
  return q;
}

DeviceQuery NvidiaDiscrete() {
  DeviceQuery q = Base("NVIDIA GeForce RTX 3060", 0x10de, VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
                       VK_DRIVER_ID_NVIDIA_PROPRIETARY, "NVIDIA");
  SetSubgroups(&q, 32, 32, 32);
  AccelerateIntDot(&q, true);
  AddHeap(&q, 12 * kGiB, true, {kLocal});
  AddHeap(&q, 24 * kGiB, false, {kVisible, kVisible | kCached});
  AddHeap(&q, kGiB / 4, true, {kLocal | kVisible});
  q.pci.pciBus = 1;
  return q;
}

DeviceQuery Lavapipe() {
  DeviceQuery q = Base("llvmpipe (LLVM 15.0.6, 256 bits)", 0x10005, VK_PHYSICAL_DEVICE_TYPE_CPU,
                       VK_DRIVER_ID_MESA_LLVMPIPE, "llvmpipe");
  SetSubgroups(&q, 8, 8, 8);
  q.subgroup_sizes.maxComputeWorkgroupSubgroups = 32;
  q.properties.limits.maxStorageBufferRange = 128 << 20;
  q.properties.limits.maxComputeSharedMemorySize = 32768;
  q.properties.limits.maxPushConstantsSize = 128;
  q.properties.limits.maxPerStageDescriptorStorageBuffers = 32;
  q.properties.limits.timestampPeriod = 1;
  q.properties11.maxMemoryAllocationSize = 2 * kGiB;
  q.extensions = {VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME};
  AddHeap(&q, 2 * kGiB, true, {kLocal | kVisible | kCached});
  return q;
}

}  // namespace trine::vulkan::testing
