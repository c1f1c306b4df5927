#include "runtime/model/weight_arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace trine {

absl::StatusOr<std::unique_ptr<WeightArena>> WeightArena::Reserve(
    const std::vector<const gguf::TensorInfo*>& tensors, uint64_t alignment) {
  std::unique_ptr<WeightArena> arena(new WeightArena());
  const auto up = [](uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; };
  uint64_t end = 0;
  for (const gguf::TensorInfo* tensor : tensors) {
    const uint64_t begin = up(end, alignment);
    if (!arena->ranges_.emplace(tensor, ByteRange{begin, begin + tensor->bytes}).second) continue;
    end = begin + tensor->bytes;
  }
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t bytes = up(end, std::max(page, alignment));
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there is no room for weights of ", end, " bytes: ", std::strerror(errno)));
  }
  arena->data_ = static_cast<std::byte*>(data);
  arena->bytes_ = bytes;
  return arena;
}

WeightArena::~WeightArena() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

void WeightArena::Fill(const gguf::TensorInfo* tensor) {
  std::memcpy(data_ + RangeOf(tensor).begin, tensor->data, tensor->bytes);
}

}  // namespace trine
