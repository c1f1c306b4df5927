// Plays a Vulkan driver without a device. Counts objects that are made and destroyed, notes what is
// recorded, and fails on request. Submitted work is taken as done at once and is not executed.
// Vulkan's functions have no "this", so the FakeDriver that was made last answers all calls.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/vulkan/device/device_caps.h"
#include "backends/vulkan/device/loader.h"

namespace trine::vulkan::testing {

// A driver that shows the given devices. Tests set its public members before they use it.
class FakeDriver {
 public:
  explicit FakeDriver(std::vector<DeviceQuery> devices);
  ~FakeDriver();

  // Returns the function through which all others are found.
  static PFN_vkGetInstanceProcAddr Entry();

  // Makes a function ("vkCreateBuffer") return `result` in the call-th call from now; with
  // `for_good` in all later calls too.
  void Fail(const std::string& function, VkResult result, int call = 1, bool for_good = false);
  // The names of functions that the driver does not have.
  std::set<std::string> missing;

  std::vector<DeviceQuery> devices;
  std::vector<std::string> layers;
  uint32_t version = VK_API_VERSION_1_3;
  bool hangs = false;               // submitted work never finishes
  bool copies = false;              // submissions execute the copies that were recorded last
  bool snapshots = false;           // an import copies the memory's content once
  bool keeps_writes = false;        // copies into imported memory have no effect
  uint64_t budget = 0, usage = 0;   // the answers of VK_EXT_memory_budget for every heap
  std::vector<uint8_t> cache_data;  // the data of pipeline caches

  // A log of what happened.
  std::vector<std::string> commands;  // "dispatch 4 1 1", "barrier", "push 4", ...
  std::vector<VkMemoryBarrier> barriers;
  std::vector<VkDescriptorBufferInfo> descriptors;
  std::vector<uint64_t> allocations;  // sizes in bytes, in order
  std::vector<uint32_t> memory_types;
  std::vector<uint32_t> pipeline_constants;  // the constants of the last pipeline
  uint32_t pipeline_subgroup_size = 0;
  std::set<uint32_t> subgroup_sizes;         // the sizes of all pipelines; 0: none was required
  std::set<VkStructureType> asked;           // structs in the chains of queries
  std::set<VkStructureType> device_structs;  // structs in the chain of the last device made
  std::set<std::string> device_extensions;   // extensions of the last device made
  std::vector<uint8_t> initial_cache;        // the data that the last pipeline cache was made from
  std::map<std::string, int> calls;
  std::vector<const void*> imports;     // in order
  std::vector<uint64_t> wait_timeouts;  // in order
  int submissions = 0;
  int live = 0;  // objects made and not destroyed

  // Used by the fake functions.
  VkResult Result(const char* function);
  template <class Handle>
  Handle Make() {
    ++live;
    return reinterpret_cast<Handle>(++last_handle_);
  }
  struct Free {
    void operator()(uint8_t* bytes) const { std::free(bytes); }
  };
  std::map<VkDeviceMemory, std::unique_ptr<uint8_t, Free>> memory;
  std::map<VkDeviceMemory, uint8_t*> imported;
  std::map<VkBuffer, VkDeviceMemory> bound;
  struct Copy {
    VkBuffer from, to;
    VkBufferCopy region;
  };
  std::vector<Copy> recorded_copies;
  std::map<VkSemaphore, uint64_t> timelines;

 private:
  struct Plan {
    VkResult result;
    int calls;
    bool for_good;
  };
  std::map<std::string, Plan> plans_;
  uintptr_t last_handle_ = 0x1000;
  FakeDriver* before_;
};

}  // namespace trine::vulkan::testing
