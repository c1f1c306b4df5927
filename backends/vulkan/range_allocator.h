// Which bytes of an arena are free.
#ifndef TRINE_BACKENDS_VULKAN_RANGE_ALLOCATOR_H_
#define TRINE_BACKENDS_VULKAN_RANGE_ALLOCATOR_H_

#include <cstdint>
#include <map>
#include <optional>

namespace trine::vulkan {

class RangeAllocator {
 public:
  explicit RangeAllocator(uint64_t bytes);

  // The offset of `bytes` > 0 at a multiple of `alignment`, a power of two, out of the smallest gap
  // that holds them.
  std::optional<uint64_t> Take(uint64_t bytes, uint64_t alignment);
  void GiveBack(uint64_t offset, uint64_t bytes);  // exactly what was taken

  uint64_t free_bytes() const { return free_bytes_; }
  bool all_free() const { return free_bytes_ == total_; }

 private:
  uint64_t total_;
  uint64_t free_bytes_;
  std::map<uint64_t, uint64_t> gaps_;  // offset to bytes; no two touch
};

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_RANGE_ALLOCATOR_H_
