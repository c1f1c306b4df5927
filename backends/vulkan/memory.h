// The device's memory: few large arenas, each one VkBuffer, cut up into allocations.
#ifndef TRINE_BACKENDS_VULKAN_MEMORY_H_
#define TRINE_BACKENDS_VULKAN_MEMORY_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/vulkan/device.h"
#include "backends/vulkan/range_allocator.h"
#include "backends/vulkan/tuning.h"

namespace trine::vulkan {

// Bytes of a buffer, as a dispatch binds them.
struct BufferRange {
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t offset = 0;
  uint64_t bytes = 0;

  // A part of it. The caller has checked that it is one.
  BufferRange Part(uint64_t from, uint64_t n) const { return {buffer, offset + from, n}; }
};

class Memory;
struct Arena;

// Memory that goes back when this does. Content is undefined at first.
class Allocation {
 public:
  Allocation() = default;
  Allocation(Allocation&& other) noexcept { *this = std::move(other); }
  Allocation& operator=(Allocation&& other) noexcept;
  ~Allocation() { Reset(); }
  void Reset();

  const BufferRange& range() const { return range_; }
  uint64_t bytes() const { return range_.bytes; }
  // Where the host sees it, coherently; null where it does not.
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

// Thread-safe. Outlives its allocations.
class Memory {
 public:
  // What every allocation begins at a multiple of, whatever the device would accept.
  static constexpr uint64_t kAlignment = 256;
  static constexpr uint64_t kArenaBytes = uint64_t{64} << 20;

  explicit Memory(Device& device);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // RESOURCE_EXHAUSTED, with what is left, where there is no room.
  absl::StatusOr<Allocation> Allocate(uint64_t bytes, MemoryUse use);

  // Memory of the host's, used where it lies: no copy is made, and it must stay until the
  // allocation is gone. Pointer and size are multiples of caps().import_alignment, else
  // INVALID_ARGUMENT. A device or driver that won't answers UNIMPLEMENTED (mapped files are refused
  // by some) or RESOURCE_EXHAUSTED. The same bytes must not be imported twice: hazards are told by
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

#endif  // TRINE_BACKENDS_VULKAN_MEMORY_H_
