// Memory of the host's for what passes leave, one block for each moment: time 0, 1, 2, ... What
// lies in it is named by handles, offsets that stay valid while it grows; a pointer holds until the
// next block is asked for. Going back in time gives no memory back: what comes next takes its
// place. Not thread-safe.
#ifndef TRINE_RUNTIME_GRAPH_ARENA_H_
#define TRINE_RUNTIME_GRAPH_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace trine {

struct Handle {
  uint64_t offset = 0;  // from the arena's beginning
  uint64_t bytes = 0;

  // A part of it.
  Handle Part(uint64_t from, uint64_t n) const { return {offset + from, n}; }
  bool operator==(const Handle&) const = default;
};

class Arena {
 public:
  // What is poisoned reads as this everywhere: a NaN, and no index.
  static constexpr std::byte kPoison{0xff};

  explicit Arena(uint64_t chunk_bytes = uint64_t{64} << 20) : chunk_bytes_(chunk_bytes) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // The block of the next moment; nothing is said of what is in it. RESOURCE_EXHAUSTED without
  // memory: then all stays as it is.
  absl::StatusOr<Handle> Advance(uint64_t bytes);
  // Forgets the blocks of `time` and later ones, however many there are, in no time.
  void Regress(size_t time);
  size_t now() const { return blocks_.size(); }  // the next moment
  Handle Block(size_t time) const { return blocks_[time]; }
  // The moment in whose block it lies.
  size_t TimeOf(const Handle& handle) const;

  std::byte* At(const Handle& handle) const;
  void Poison(const Handle& handle) const;

  uint64_t bytes() const;  // of memory, in use or not

 private:
  struct Chunk {
    uint64_t begin;  // offset
    uint64_t bytes;
    std::byte* memory;
  };

  const Chunk* Find(uint64_t offset) const;
  uint64_t top() const;
  // Where a block of so many bytes can begin.
  absl::StatusOr<uint64_t> FindRoom(uint64_t bytes);

  const uint64_t chunk_bytes_;
  std::vector<Chunk> chunks_;  // in order, without gaps
  std::vector<Handle> blocks_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_GRAPH_ARENA_H_
