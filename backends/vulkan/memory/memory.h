// Allocates the device's memory: a few large arenas, each one VkBuffer, are divided into
// allocations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/vulkan/device/device.h"
#include "backends/vulkan/device/tuning.h"

namespace trine::vulkan {

// Keeps track of which bytes of an arena are free.
class RangeAllocator {
 public:
  explicit RangeAllocator(uint64_t bytes);

  // Takes `bytes` > 0 from the smallest gap that fits. Returns their offset, which is a multiple of
  // `alignment`, a power of two. Returns nullopt if no gap fits.
  std::optional<uint64_t> Take(uint64_t bytes, uint64_t alignment);
  void GiveBack(uint64_t offset, uint64_t bytes);  // exactly as taken

  bool all_free() const { return free_bytes_ == total_; }

 private:
  uint64_t total_;
  uint64_t free_bytes_;
  std::map<uint64_t, uint64_t> gaps_;  // offset to bytes; no two gaps touch
};

// Bytes of a buffer, as a dispatch binds them.
struct BufferRange {
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t offset = 0;
  uint64_t bytes = 0;

  // Returns a part of the range, which the caller must have checked.
  BufferRange Part(uint64_t from, uint64_t n) const { return {buffer, offset + from, n}; }
};

class Memory;
struct Arena;

// Owns memory and gives it back on destruction. The content is undefined at first.
class Allocation {
 public:
  Allocation() = default;
  Allocation(Allocation&& other) noexcept { *this = std::move(other); }
  Allocation& operator=(Allocation&& other) noexcept;
  ~Allocation() { Reset(); }
  void Reset();

  const BufferRange& range() const { return range_; }
  uint64_t bytes() const { return range_.bytes; }
  // Returns where the host sees the memory, coherently. Returns null if the host can't see it.
  std::byte* host() const { return host_; }
  bool host_cached() const { return host_cached_; }  // reading it through host() is fast
  bool imported() const { return imported_; }

 private:
  friend class Memory;
  Memory* memory_ = nullptr;
  Arena* arena_ = nullptr;
  BufferRange range_;
  std::byte* host_ = nullptr;
  bool host_cached_ = false;
  bool imported_ = false;
};

// Thread-safe. Must outlive its allocations.
class Memory {
 public:
  // The alignment of every allocation, even where the device needs less.
  static constexpr uint64_t kAlignment = 256;
  static constexpr uint64_t kArenaBytes = uint64_t{64} << 20;

  explicit Memory(Device& device);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Returns RESOURCE_EXHAUSTED if there is no room, and says how many bytes are left.
  absl::StatusOr<Allocation> Allocate(uint64_t bytes, MemoryUse use);

  // Uses memory of the host in place, without a copy. The memory must stay valid until the
  // allocation is gone. Returns INVALID_ARGUMENT unless pointer and size are multiples of
  // caps().import_alignment; UNIMPLEMENTED or RESOURCE_EXHAUSTED if the device or driver refuses
  // (some refuse mapped files). The same bytes must not be imported twice: hazards are detected by
  // buffer.
  absl::StatusOr<Allocation> Import(void* host, uint64_t bytes);

 private:
  friend class Allocation;

  absl::StatusOr<Allocation> TakeFrom(Arena& arena, uint64_t bytes);
  absl::StatusOr<std::unique_ptr<Arena>> MakeArena(uint64_t bytes, MemoryUse use);
  absl::Status ImportInto(Arena* arena, void* host, uint64_t bytes);
  absl::Status AllocateType(Arena* arena, uint32_t type, const void* next);
  absl::Status Map(Arena* arena);
  void Unback(Arena* arena);  // gives the arena's memory back
  void Destroy(Arena* arena);
  void GiveBack(Arena* arena, const BufferRange& range);

  Device& device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Arena>> arenas_;
};

}  // namespace trine::vulkan
