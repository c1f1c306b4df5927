#include "runtime/model/weights/weight_arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace trine {

absl::StatusOr<std::unique_ptr<WeightArena>> WeightArena::Reserve(
    const std::vector<const gguf::TensorInfo*>& tensors, uint64_t tensor_alignment,
    uint64_t alignment) {
  std::unique_ptr<WeightArena> arena(new WeightArena());
  const auto up = [](uint64_t n, uint64_t to) { return (n + to - 1) / to * to; };
  uint64_t end = 0;
  for (const gguf::TensorInfo* tensor : tensors) {
    const uint64_t begin = up(end, tensor_alignment);
    if (!arena->ranges_.emplace(tensor, ByteRange{begin, begin + tensor->bytes}).second) continue;
    end = begin + tensor->bytes;
  }
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  alignment = std::max(page, alignment);
  const uint64_t bytes = up(end, alignment);
  const uint64_t mapped_bytes = bytes + (alignment - page);  // room to align the beginning
  void* mapped =
      mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there is no room for weights of ", end, " bytes: ", std::strerror(errno)));
  }
#if defined(MADV_HUGEPAGE)
  // Asks for large pages before the first touch: weights are read in order, and the processor stops
  // prefetching at the end of every page.
  constexpr uint64_t kLarge = uint64_t{4} << 20;
  if (bytes >= kLarge) madvise(mapped, mapped_bytes, MADV_HUGEPAGE);
#endif
  arena->mapped_ = mapped;
  arena->mapped_bytes_ = mapped_bytes;
  const auto address = reinterpret_cast<uintptr_t>(mapped);
  arena->data_ = static_cast<std::byte*>(mapped) + (up(address, alignment) - address);
  arena->bytes_ = bytes;
  return arena;
}

WeightArena::~WeightArena() {
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
}

void WeightArena::Fill(const gguf::TensorInfo* tensor, uint64_t begin, uint64_t end) {
  std::memcpy(data_ + RangeOf(tensor).begin + begin, tensor->data + begin, end - begin);
}

std::vector<ByteRange> ImportWindows(std::vector<ByteRange> ranges, uint64_t alignment,
                                     uint64_t max_bytes, uint64_t memory_bytes) {
  // Ranges with at most this gap between them are imported together. That saves a buffer, but a
  // driver may pin the gap too, so the gap must not be large.
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
