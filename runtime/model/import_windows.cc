#include "runtime/model/import_windows.h"

#include <algorithm>

namespace trine {

std::vector<ByteRange> ImportWindows(std::vector<ByteRange> ranges, uint64_t alignment,
                                     uint64_t max_bytes, uint64_t memory_bytes) {
  // What lies between two weights is cheaper to have than another buffer, up to a point: a driver
  // may pin all that it imports.
  constexpr uint64_t kLargestGap = uint64_t{1} << 20;
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  std::vector<ByteRange> windows;
  for (const ByteRange& range : ranges) {
    const uint64_t begin = range.begin / alignment * alignment;
    const uint64_t end =
        std::min((range.end + alignment - 1) / alignment * alignment, memory_bytes);
    if (!windows.empty()) {
      ByteRange& last = windows.back();
      const uint64_t joined_end = std::max(last.end, end);
      const bool fits = max_bytes == 0 || joined_end - last.begin <= max_bytes;
      const bool near = begin <= last.end || begin - last.end <= kLargestGap;
      if (fits && near) {
        last.end = joined_end;
        continue;
      }
    }
    windows.push_back({begin, end});
  }
  return windows;
}

}  // namespace trine
