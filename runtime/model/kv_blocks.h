// Which blocks of the KV caches belong to whom. All layers share one numbering: block b of a
// sequence is block b of every layer's cache. A block may have several holders; it is free when the
// last one lets go. The pool is thread-safe; a table is its owner's.
#ifndef TRINE_RUNTIME_MODEL_KV_BLOCKS_H_
#define TRINE_RUNTIME_MODEL_KV_BLOCKS_H_

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

class KvBlockPool {
 public:
  explicit KvBlockPool(int64_t n_blocks);

  // Asked when blocks run out, with how many more are wanted: lets go of some of its own, and says
  // of how many. Called without the pool's lock.
  using Reclaim = std::function<size_t(size_t wanted)>;
  void set_reclaim(Reclaim reclaim);

  // Appends blocks to `table` until it has `count`, all or none. RESOURCE_EXHAUSTED otherwise.
  absl::Status Grow(size_t count, std::vector<int32_t>* table);
  // Lets go of the blocks of `table` beyond the first `count`.
  void Shrink(size_t count, std::vector<int32_t>* table);

  // One holder more, or less, of a block that has one.
  void Hold(int32_t block);
  void LetGo(int32_t block);
  bool IsShared(int32_t block) const;  // has other holders than the one who asks
  // Lets go of those blocks of `table` from number `first` on that have other holders; the others
  // move up.
  void LetGoOfShared(size_t first, std::vector<int32_t>* table);

  int64_t total() const { return total_; }
  int64_t free() const;

 private:
  void LetGoLocked(int32_t block);

  const int64_t total_;
  mutable std::mutex mutex_;      // guards what follows
  std::vector<int32_t> free_;     // the last one goes next
  std::vector<int32_t> holders_;  // of each block, how many
  Reclaim reclaim_;
};

// A sequence's blocks, in order of position; given back when it goes.
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
  // The first blocks become these, which their holder keeps.
  void Adopt(std::span<const int32_t> blocks);
  // This one's blocks become another's of the same pool, and the other way round.
  void Swap(BlockTable* other) {
    blocks_.swap(other->blocks_);
    std::swap(version_, other->version_);
  }
  // Another block, of which nothing is known, in the place of one that others hold too; that one.
  absl::StatusOr<int32_t> Replace(size_t number);
  // Lets go of blocks from number `first` on that others hold too. What stays moves up: from there
  // on nothing can be said of what the blocks contain.
  void LetGoOfShared(size_t first);
  bool IsShared(size_t number) const {
    return number < blocks_.size() && pool_->IsShared(blocks_[number]);
  }

  const std::vector<int32_t>& blocks() const { return blocks_; }
  // Another number for whatever changes the blocks, and for every table: where it is the same, the
  // blocks are.
  uint64_t version() const { return version_; }
  const std::shared_ptr<KvBlockPool>& pool() const { return pool_; }
  // Where a position's k and v lie: block * block positions + offset.
  int32_t SlotOf(int64_t position) const;

 private:
  void Changed();

  std::shared_ptr<KvBlockPool> pool_;
  std::vector<int32_t> blocks_;
  uint64_t version_ = 0;  // 0: it never had any
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_KV_BLOCKS_H_
