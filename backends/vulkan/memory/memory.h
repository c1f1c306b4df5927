// Allocates a device's memory. A driver allows few allocations, so Memory takes a few large arenas
// from it, each with one VkBuffer, and divides them into allocations.
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

// Keeps track of which bytes of an arena are free. One thread at a time may call.
class RangeAllocator {
 public:
  explicit RangeAllocator(uint64_t bytes);  // all of them are free

  // Takes `bytes` > 0 from the smallest gap that fits. Returns their offset, which is a multiple of
  // `alignment`, a power of two. Returns nullopt if no gap fits.
  std::optional<uint64_t> Take(uint64_t bytes, uint64_t alignment);
  // Frees bytes. REQUIRES: Take(bytes, ...) returned `offset`, and this is the first call since.
  void GiveBack(uint64_t offset, uint64_t bytes);

  bool all_free() const { return free_bytes_ == total_; }

 private:
  uint64_t total_;
  uint64_t free_bytes_;
  std::map<uint64_t, uint64_t> gaps_;  // offset to bytes; no two gaps touch
};

// Some bytes of a buffer, as a dispatch binds them. Owns nothing.
struct BufferRange {
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t offset = 0;
  uint64_t bytes = 0;

  // Returns `n` bytes of the range. REQUIRES: from + n <= bytes.
  BufferRange Part(uint64_t from, uint64_t n) const { return {buffer, offset + from, n}; }
};

class Memory;
struct Arena;

// Owns some bytes of an arena, and gives them back on destruction. Memory that the host lent
// (Import) keeps its content; the content of other memory is undefined at first. REQUIRES: the
// device has done all work that uses the bytes before they are given back. One thread at a time may
// call.
class Allocation {
 public:
  Allocation() = default;
  Allocation(Allocation&& other) noexcept { *this = std::move(other); }
  Allocation& operator=(Allocation&& other) noexcept;
  ~Allocation() { Reset(); }
  void Reset();  // gives the bytes back now

  const BufferRange& range() const { return range_; }
  uint64_t bytes() const { return range_.bytes; }
  // Returns where the host sees the bytes; null if it can't. Host and device see each other's
  // writes without a flush.
  std::byte* host() const { return host_; }
  bool host_cached() const { return host_cached_; }  // the host reads the bytes fast
  bool imported() const { return imported_; }        // Import made it

 private:
  friend class Memory;
  Memory* memory_ = nullptr;
  Arena* arena_ = nullptr;
  BufferRange range_;
  std::byte* host_ = nullptr;
  bool host_cached_ = false;
  bool imported_ = false;
};

// Makes allocations. Thread-safe. The device must outlive it, and it must outlive its allocations.
class Memory {
 public:
  // The alignment of every allocation, even where the device needs less.
  static constexpr uint64_t kAlignment = 256;
  // The size of an arena for several allocations, if the device allows it. An allocation of more
  // than half of it has an arena to itself.
  static constexpr uint64_t kArenaBytes = uint64_t{64} << 20;

  explicit Memory(Device& device);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Allocates memory for a use. Returns
  //   INVALID_ARGUMENT    for 0 bytes;
  //   RESOURCE_EXHAUSTED  for more bytes than caps().max_allocation, or than are left (it says how
  //                       many are);
  //   UNAVAILABLE         if the device is lost;
  //   another error       if the driver has one.
  absl::StatusOr<Allocation> Allocate(uint64_t bytes, MemoryUse use);

  // Makes an allocation of memory that the host has, without a copy. The memory must stay valid
  // until the allocation is gone. The same bytes must not be in two imports at a time: each is a
  // buffer of its own, and the recorder finds out by buffer which work must wait for which. Returns
  //   UNIMPLEMENTED       if the device can't import, or the driver refuses (some refuse mapped
  //                       files);
  //   INVALID_ARGUMENT    unless pointer and size are multiples of caps().import_alignment, and the
  //                       size is not 0;
  //   RESOURCE_EXHAUSTED  as Allocate does;
  //   UNAVAILABLE         if the device is lost.
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
