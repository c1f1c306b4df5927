#include "backends/vulkan/windows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace trine::vulkan {

absl::StatusOr<std::vector<Window>> MakeWindows(const DeviceCaps& caps, uint64_t offset,
                                                uint64_t rows, uint64_t row_bytes) {
  std::vector<Window> windows;
  for (uint64_t row = 0; row < rows;) {
    const uint64_t begin = offset + row * row_bytes;
    const uint64_t skip = begin % caps.storage_alignment;
    const uint64_t most = caps.max_storage_range > skip ? caps.max_storage_range - skip : 0;
    const uint64_t count = row_bytes == 0 ? rows : std::min(rows - row, most / row_bytes);
    if (count == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a row of ", row_bytes, " bytes is larger than a binding of ", caps.name,
                       " may be (", caps.max_storage_range, " bytes)"));
    }
    windows.push_back(
        {row, count, begin - skip, skip + count * row_bytes, static_cast<uint32_t>(skip)});
    row += count;
  }
  return windows;
}

}  // namespace trine::vulkan
