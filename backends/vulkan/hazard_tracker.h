// When work has to wait for work before it: which bytes were read and written since the last
// barrier.
#ifndef TRINE_BACKENDS_VULKAN_HAZARD_TRACKER_H_
#define TRINE_BACKENDS_VULKAN_HAZARD_TRACKER_H_

#include <map>
#include <span>
#include <vector>

#include "backends/vulkan/memory.h"

namespace trine::vulkan {

enum class Access : uint32_t { kRead = 1, kWrite = 2, kReadWrite = 3 };
inline bool Reads(Access access) { return (static_cast<uint32_t>(access) & 1) != 0; }
inline bool Writes(Access access) { return (static_cast<uint32_t>(access) & 2) != 0; }

struct Binding {
  BufferRange range;
  Access access = Access::kRead;
};

class HazardTracker {
 public:
  // Whether these uses touch bytes that were written since the last barrier, or write bytes that
  // were read.
  bool NeedsBarrier(std::span<const Binding> uses) const;
  void Note(std::span<const Binding> uses);
  void Barrier();  // all that was noted is done

 private:
  struct Range {
    uint64_t begin, end;
  };
  struct Uses {
    std::vector<Range> reads, writes;
  };
  static bool Overlaps(const std::vector<Range>& ranges, const BufferRange& range);

  std::map<VkBuffer, Uses> uses_;
};

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_HAZARD_TRACKER_H_
