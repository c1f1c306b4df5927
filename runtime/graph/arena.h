// Host memory for the values of passes. The arena has one block for each time 0, 1, 2, ... A Handle
// names a part of the arena by an offset, which stays valid while the arena grows; a pointer is
// valid until the next Advance. Regress frees no memory: later blocks reuse it. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace trine {

struct Handle {
  uint64_t offset = 0;  // from the arena's beginning
  uint64_t bytes = 0;

  // Returns a part of this handle's memory.
  Handle Part(uint64_t from, uint64_t n) const { return {offset + from, n}; }
  bool operator==(const Handle&) const = default;
};

class Arena {
 public:
  // Poison writes this byte. Several of them read as a NaN, and as an invalid index.
  static constexpr std::byte kPoison{0xff};

  explicit Arena(uint64_t chunk_bytes = uint64_t{64} << 20) : chunk_bytes_(chunk_bytes) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Adds the block of the next time, with undefined contents. Returns RESOURCE_EXHAUSTED and
  // changes nothing if there is no memory.
  absl::StatusOr<Handle> Advance(uint64_t bytes);
  // Drops the blocks of `time` and later. Takes the same time for any number of blocks.
  void Regress(size_t time);
  size_t now() const { return blocks_.size(); }  // the time of the next block
  Handle Block(size_t time) const { return blocks_[time]; }

  std::byte* At(const Handle& handle) const;
  // Overwrites all bytes of `handle`, so that a value that is read before it is written shows.
  void Poison(const Handle& handle) const;

  uint64_t bytes() const;  // the size of all memory, used or not

 private:
  struct Chunk {
    uint64_t begin;  // the offset of the first byte
    uint64_t bytes;
    std::byte* memory;
  };

  const Chunk* Find(uint64_t offset) const;
  uint64_t top() const;
  // Returns the offset at which a block of `bytes` can begin. Allocates if need be.
  absl::StatusOr<uint64_t> FindRoom(uint64_t bytes);

  const uint64_t chunk_bytes_;
  std::vector<Chunk> chunks_;  // in order of offset, without gaps
  std::vector<Handle> blocks_;
};

}  // namespace trine
