#include "runtime/model/weight_arena.h"

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
  const uint64_t mapped_bytes = bytes + (alignment - page);  // to begin where it must
  void* mapped =
      mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there is no room for weights of ", end, " bytes: ", std::strerror(errno)));
  }
#if defined(MADV_HUGEPAGE)
  // Before the first touch: weights are read from end to end, and every page that ends stops the
  // processor's prefetching.
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

}  // namespace trine
