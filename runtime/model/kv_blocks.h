// Which blocks of the KV caches belong to whom. All layers share one numbering: block b of a
// sequence is block b of every layer's cache. Thread-safe.
#ifndef TRINE_RUNTIME_MODEL_KV_BLOCKS_H_
#define TRINE_RUNTIME_MODEL_KV_BLOCKS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"

namespace trine {

class KvBlockPool {
 public:
  explicit KvBlockPool(int64_t n_blocks);

  // Appends blocks to `table` until it has `count`, all or none. RESOURCE_EXHAUSTED otherwise.
  absl::Status Grow(size_t count, std::vector<int32_t>* table);
  // Gives back the blocks of `table` beyond the first `count`.
  void Shrink(size_t count, std::vector<int32_t>* table);

  int64_t total() const { return total_; }
  int64_t free() const;

 private:
  const int64_t total_;
  mutable std::mutex mutex_;
  std::vector<int32_t> free_;  // the last one goes next
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

  const std::vector<int32_t>& blocks() const { return blocks_; }
  // Where a position's k and v lie: block * block positions + offset.
  int32_t SlotOf(int64_t position) const;

 private:
  std::shared_ptr<KvBlockPool> pool_;
  std::vector<int32_t> blocks_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_KV_BLOCKS_H_
