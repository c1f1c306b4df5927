// Records which blocks of the KV caches belong to which sequences, and which blocks a pass moves.
// All layers share one numbering: block b of a sequence is block b of every layer's cache. A block
// may have several holders; it is free when the last holder lets go. The pool is thread-safe; a
// table belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace trine {

// The blocks of all KV caches: which are free, and how many holders each of the others has.
class KvBlockPool {
 public:
  explicit KvBlockPool(int64_t n_blocks);

  // Called when the pool has too few free blocks, without the pool's lock. Lets go of up to
  // `wanted` blocks that the function's owner holds, and returns how many.
  using Reclaim = std::function<size_t(size_t wanted)>;
  void set_reclaim(Reclaim reclaim);

  // Appends blocks to `table` until it has `count`. Returns RESOURCE_EXHAUSTED, and appends none,
  // if too few are free.
  absl::Status Grow(size_t count, std::vector<int32_t>* table);
  // Lets go of the blocks of `table` beyond the first `count`.
  void Shrink(size_t count, std::vector<int32_t>* table);

  // Add or remove one holder of a block that has at least one.
  void Hold(int32_t block);
  void LetGo(int32_t block);
  bool IsShared(int32_t block) const;  // whether it has more than one holder
  // Lets go of the blocks of `table` from index `first` on that have other holders. The other
  // blocks move up.
  void LetGoOfShared(size_t first, std::vector<int32_t>* table);

  int64_t total() const { return total_; }
  int64_t free() const;

 private:
  void LetGoLocked(int32_t block);

  const int64_t total_;
  mutable std::mutex mutex_;      // guards the members below
  std::vector<int32_t> free_;     // the last one is taken first
  std::vector<int32_t> holders_;  // by block: the number of its holders
  Reclaim reclaim_;
};

// The blocks of a sequence, in order of position. Lets go of them when it is destroyed.
class BlockTable {
 public:
  explicit BlockTable(std::shared_ptr<KvBlockPool> pool) : pool_(std::move(pool)) {}
  ~BlockTable() { pool_->Shrink(0, &blocks_); }
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  // Makes room for positions [0, n).
  absl::Status Reserve(int64_t n_positions);
  // Keeps the blocks of positions [0, n).
  void Truncate(int64_t n_positions);
  // Replaces the table's first blocks by `blocks`, of which the table becomes one more holder.
  void Adopt(std::span<const int32_t> blocks);
  // Exchanges the blocks with those of another table of the same pool.
  void Swap(BlockTable* other) {
    blocks_.swap(other->blocks_);
    std::swap(version_, other->version_);
  }
  // Replaces a block that has other holders by a new one with unknown contents. Returns the old
  // block.
  absl::StatusOr<int32_t> Replace(size_t number);
  // Lets go of the blocks from index `first` on that have other holders. The rest moves up, so from
  // `first` on the contents of the blocks are unknown.
  void LetGoOfShared(size_t first);
  bool IsShared(size_t number) const {
    return number < blocks_.size() && pool_->IsShared(blocks_[number]);
  }

  const std::vector<int32_t>& blocks() const { return blocks_; }
  // Returns a number that is new for every change and unique among all tables: tables of equal
  // version have equal blocks.
  uint64_t version() const { return version_; }
  const std::shared_ptr<KvBlockPool>& pool() const { return pool_; }
  // Returns the KV slot of a position: block * kBlockPositions + offset.
  int32_t SlotOf(int64_t position) const;

 private:
  void Changed();

  std::shared_ptr<KvBlockPool> pool_;
  std::vector<int32_t> blocks_;
  uint64_t version_ = 0;  // 0: it has had no blocks yet
};

// The contents of one block in the caches of all layers, K before V, in the canonical layout
// (docs/plugin-abi.md). The bytes do not depend on where the layers are.
using KvBlockBytes = std::vector<std::byte>;

// The KV blocks that a pass loads, copies and saves. Every stage moves its part of them when the
// pass reaches the stage, after earlier passes have written there and before later passes do.
struct KvMoves {
  struct Copy {
    int32_t from, to;
  };
  struct Load {
    int32_t to;
    std::shared_ptr<const KvBlockBytes> bytes;  // Model::kv_block_bytes() bytes
  };
  struct Save {
    int32_t from;
    std::shared_ptr<KvBlockBytes> bytes;  // complete after the last stage
  };

  // These are made before the pass computes: first the loads, so that a loaded block can be copied.
  std::vector<Load> loads;
  std::vector<Copy> copies;
  // These are made after the pass has computed.
  std::vector<Save> saves;

  // Returns the number of moves that are made before the pass computes.
  size_t before() const { return loads.size() + copies.size(); }
  void Clear() {
    loads.clear();
    copies.clear();
    saves.clear();
  }
};

}  // namespace trine
