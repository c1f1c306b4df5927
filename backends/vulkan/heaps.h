// What is left of a device's memory: as its driver says where it does, else its heaps' sizes less
// what this backend has taken of them, in all that it has open.
#ifndef TRINE_BACKENDS_VULKAN_HEAPS_H_
#define TRINE_BACKENDS_VULKAN_HEAPS_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "backends/vulkan/device_caps.h"
#include "backends/vulkan/loader.h"

namespace trine::vulkan {

// Thread-safe.
class Heaps {
 public:
  // `functions` outlives it.
  Heaps(const InstanceTable& functions, VkPhysicalDevice device, const DeviceCaps& caps);
  Heaps(const Heaps&) = delete;
  Heaps& operator=(const Heaps&) = delete;

  void Take(uint32_t heap, uint64_t bytes) { used_[heap] += bytes; }
  void GiveBack(uint32_t heap, uint64_t bytes) { used_[heap] -= bytes; }

  // Of one heap, what may still be taken.
  uint64_t Left(uint32_t heap) const;
  // Of the device's own heaps, or of all where it has none.
  uint64_t FreeBytes() const;
  // Of all heaps, what this backend has taken, imports included.
  uint64_t UsedBytes() const;

 private:
  // Of all heaps, at one moment.
  std::array<uint64_t, VK_MAX_MEMORY_HEAPS> LeftOfAll() const;

  const InstanceTable& functions_;
  VkPhysicalDevice device_;
  VkPhysicalDeviceMemoryProperties memory_;
  bool driver_tells_;
  std::array<std::atomic<uint64_t>, VK_MAX_MEMORY_HEAPS> used_{};
};

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_HEAPS_H_
