#include "runtime/model/kv_blocks.h"

#include "absl/strings/str_cat.h"
#include "runtime/model/segment_graph.h"

namespace trine {
namespace {

size_t BlocksFor(int64_t n_positions) {
  return static_cast<size_t>((n_positions + kBlockPositions - 1) / kBlockPositions);
}

}  // namespace

KvBlockPool::KvBlockPool(int64_t n_blocks) : total_(n_blocks) {
  for (int64_t b = n_blocks - 1; b >= 0; --b) free_.push_back(static_cast<int32_t>(b));
}

absl::Status KvBlockPool::Grow(size_t count, std::vector<int32_t>* table) {
  if (table->size() >= count) return absl::OkStatus();
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t wanted = count - table->size();
  if (wanted > free_.size()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the KV cache is full: ", wanted, " more blocks of ", kBlockPositions,
                     " positions are needed, ", free_.size(), " of ", total_, " are free"));
  }
  for (size_t i = 0; i < wanted; ++i) {
    table->push_back(free_.back());
    free_.pop_back();
  }
  return absl::OkStatus();
}

void KvBlockPool::Shrink(size_t count, std::vector<int32_t>* table) {
  std::lock_guard<std::mutex> lock(mutex_);
  while (table->size() > count) {
    free_.push_back(table->back());
    table->pop_back();
  }
}

int64_t KvBlockPool::free() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(free_.size());
}

absl::Status BlockTable::Reserve(int64_t n_positions) {
  return pool_->Grow(BlocksFor(n_positions), &blocks_);
}

void BlockTable::Truncate(int64_t n_positions) { pool_->Shrink(BlocksFor(n_positions), &blocks_); }

int32_t BlockTable::SlotOf(int64_t position) const {
  const int32_t block = blocks_[static_cast<size_t>(position / kBlockPositions)];
  return static_cast<int32_t>(block * kBlockPositions + position % kBlockPositions);
}

}  // namespace trine
