// A Vulkan without a device behind it: it keeps count of what is made and destroyed, notes what is
// recorded, and fails when it is told to. Work is done the moment it is submitted, which is to say
// not at all. Vulkan's functions know no "this": of several, the one made last answers.
#ifndef TRINE_BACKENDS_VULKAN_TESTING_FAKE_DRIVER_H_
#define TRINE_BACKENDS_VULKAN_TESTING_FAKE_DRIVER_H_

#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/vulkan/device_query.h"
#include "backends/vulkan/loader.h"

namespace trine::vulkan::testing {

class FakeDriver {
 public:
  explicit FakeDriver(std::vector<DeviceQuery> devices);
  ~FakeDriver();

  // Through which everything else is found.
  static PFN_vkGetInstanceProcAddr Entry();

  // The call-th call from now of a function ("vkCreateBuffer") answers `result`, and so does each
  // after it when `for_good`.
  void Fail(const std::string& function, VkResult result, int call = 1, bool for_good = false);
  // Functions the driver does not have.
  std::set<std::string> missing;

  std::vector<DeviceQuery> devices;
  std::vector<std::string> layers;
  uint32_t version = VK_API_VERSION_1_3;
  bool hangs = false;               // submissions are never done
  bool copies = false;              // what was recorded last, as far as it is copies, is done
  bool snapshots = false;           // imports are of what was there then
  bool keeps_writes = false;        // copies into imports come to nothing
  uint64_t budget = 0, usage = 0;   // of every heap, for VK_EXT_memory_budget
  std::vector<uint8_t> cache_data;  // of pipeline caches

  // What happened.
  std::vector<std::string> commands;  // "dispatch 4 1 1", "barrier", "push 4", ...
  std::vector<VkMemoryBarrier> barriers;
  std::vector<VkDescriptorBufferInfo> descriptors;
  std::vector<uint64_t> allocations;  // bytes, in order
  std::vector<uint32_t> memory_types;
  std::vector<uint32_t> pipeline_constants;  // of the last pipeline
  uint32_t pipeline_subgroup_size = 0;
  std::set<uint32_t> subgroup_sizes;         // of all pipelines; 0: none was required
  std::set<VkStructureType> asked;           // structs in the chains of queries
  std::set<VkStructureType> device_structs;  // in the chain of the last device that was made
  std::set<std::string> device_extensions;   // that it was made with
  std::vector<uint8_t> initial_cache;        // that the last pipeline cache was made from
  std::map<std::string, int> calls;
  std::vector<const void*> imports;     // in order
  std::vector<uint64_t> wait_timeouts;  // in order
  int submissions = 0;
  int live = 0;  // objects made and not destroyed

  // For the functions themselves.
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

#endif  // TRINE_BACKENDS_VULKAN_TESTING_FAKE_DRIVER_H_
