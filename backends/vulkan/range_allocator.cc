#include "backends/vulkan/range_allocator.h"

#include <iterator>

namespace trine::vulkan {

RangeAllocator::RangeAllocator(uint64_t bytes) : total_(bytes), free_bytes_(bytes) {
  if (bytes != 0) gaps_[0] = bytes;
}

std::optional<uint64_t> RangeAllocator::Take(uint64_t bytes, uint64_t alignment) {
  auto best = gaps_.end();
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    const uint64_t skip = -gap->first & (alignment - 1);
    const bool fits = skip <= gap->second && bytes <= gap->second - skip;
    if (fits && (best == gaps_.end() || gap->second < best->second)) best = gap;
  }
  if (best == gaps_.end()) return std::nullopt;
  const auto [begin, length] = *best;
  const uint64_t offset = (begin + alignment - 1) & ~(alignment - 1);
  gaps_.erase(best);
  if (offset != begin) gaps_[begin] = offset - begin;
  const uint64_t rest = length - (offset - begin) - bytes;
  if (rest != 0) gaps_[offset + bytes] = rest;
  free_bytes_ -= bytes;
  return offset;
}

void RangeAllocator::GiveBack(uint64_t offset, uint64_t bytes) {
  free_bytes_ += bytes;
  const auto after = gaps_.lower_bound(offset);
  if (after != gaps_.end() && after->first == offset + bytes) {
    bytes += after->second;
    gaps_.erase(after);
  }
  const auto next = gaps_.lower_bound(offset);
  if (next != gaps_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  gaps_[offset] = bytes;
}

}  // namespace trine::vulkan
