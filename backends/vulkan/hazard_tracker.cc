#include "backends/vulkan/hazard_tracker.h"

#include <algorithm>

namespace trine::vulkan {

bool HazardTracker::Overlaps(const std::vector<Range>& ranges, const BufferRange& range) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range& r) {
    return r.begin < range.offset + range.bytes && range.offset < r.end;
  });
}

bool HazardTracker::NeedsBarrier(std::span<const Binding> uses) const {
  return std::any_of(uses.begin(), uses.end(), [&](const Binding& use) {
    const auto before = uses_.find(use.range.buffer);
    if (before == uses_.end()) return false;
    return Overlaps(before->second.writes, use.range) ||
           (Writes(use.access) && Overlaps(before->second.reads, use.range));
  });
}

void HazardTracker::Note(std::span<const Binding> uses) {
  for (const Binding& use : uses) {
    const Range range{use.range.offset, use.range.offset + use.range.bytes};
    Uses& of_buffer = uses_[use.range.buffer];
    // What is written conflicts with everything: that it was read too adds nothing.
    (Writes(use.access) ? of_buffer.writes : of_buffer.reads).push_back(range);
  }
}

void HazardTracker::Barrier() { uses_.clear(); }

}  // namespace trine::vulkan
