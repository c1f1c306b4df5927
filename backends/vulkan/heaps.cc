#include "backends/vulkan/heaps.h"

#include <algorithm>

namespace trine::vulkan {

Heaps::Heaps(const InstanceTable& functions, VkPhysicalDevice device, const DeviceCaps& caps)
    : functions_(functions),
      device_(device),
      memory_(caps.memory),
      driver_tells_(caps.memory_budget) {}

std::array<uint64_t, VK_MAX_MEMORY_HEAPS> Heaps::LeftOfAll() const {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  if (driver_tells_) {
    budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
    VkPhysicalDeviceMemoryProperties2 properties{};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
    properties.pNext = &budget;
    functions_.GetPhysicalDeviceMemoryProperties2(device_, &properties);
  }
  std::array<uint64_t, VK_MAX_MEMORY_HEAPS> left{};
  for (uint32_t i = 0; i < memory_.memoryHeapCount; ++i) {
    const uint64_t all = driver_tells_ ? budget.heapBudget[i] : memory_.memoryHeaps[i].size;
    const uint64_t used = driver_tells_ ? budget.heapUsage[i] : used_[i].load();
    left[i] = all - std::min(all, used);
  }
  return left;
}

uint64_t Heaps::Left(uint32_t heap) const { return LeftOfAll()[heap]; }

uint64_t Heaps::FreeBytes() const {
  const std::array<uint64_t, VK_MAX_MEMORY_HEAPS> left = LeftOfAll();
  uint64_t own = 0, all = 0;
  bool has_own = false;
  for (uint32_t i = 0; i < memory_.memoryHeapCount; ++i) {
    all += left[i];
    if ((memory_.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0) continue;
    has_own = true;
    own += left[i];
  }
  return has_own ? own : all;
}

uint64_t Heaps::UsedBytes() const {
  uint64_t used = 0;
  for (const std::atomic<uint64_t>& bytes : used_) used += bytes;
  return used;
}

}  // namespace trine::vulkan
