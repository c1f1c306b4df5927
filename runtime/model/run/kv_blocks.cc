#include "runtime/model/run/kv_blocks.h"

#include <algorithm>
#include <atomic>

#include "absl/strings/str_cat.h"
#include "runtime/model/arch/segment_graph.h"

namespace trine {
namespace {

size_t BlocksFor(int64_t n_positions) {
  return static_cast<size_t>((n_positions + kBlockPositions - 1) / kBlockPositions);
}

}  // namespace

KvBlockPool::KvBlockPool(int64_t n_blocks)
    : total_(n_blocks), holders_(static_cast<size_t>(n_blocks), 0) {
  for (int64_t b = n_blocks - 1; b >= 0; --b) free_.push_back(static_cast<int32_t>(b));
}

void KvBlockPool::set_reclaim(Reclaim reclaim) {
  std::lock_guard<std::mutex> lock(mutex_);
  reclaim_ = std::move(reclaim);
}

absl::Status KvBlockPool::Grow(size_t count, std::vector<int32_t>* table) {
  if (table->size() >= count) return absl::OkStatus();
  const size_t wanted = count - table->size();
  std::unique_lock<std::mutex> lock(mutex_);
  while (wanted > free_.size()) {
    const Reclaim reclaim = reclaim_;
    const size_t wanting = wanted - free_.size();
    lock.unlock();
    const size_t given = reclaim ? reclaim(wanting) : 0;
    lock.lock();
    if (given != 0 || wanted <= free_.size()) continue;  // another thread may have freed blocks
    return absl::ResourceExhaustedError(
        absl::StrCat("the KV cache is full: ", wanted, " more blocks of ", kBlockPositions,
                     " positions are needed, ", free_.size(), " of ", total_, " are free"));
  }
  if (table->capacity() < count) table->reserve(std::max(count, 2 * table->capacity()));
  for (size_t i = 0; i < wanted; ++i) {
    table->push_back(free_.back());
    holders_[static_cast<size_t>(free_.back())] = 1;
    free_.pop_back();
  }
  return absl::OkStatus();
}

void KvBlockPool::Shrink(size_t count, std::vector<int32_t>* table) {
  std::lock_guard<std::mutex> lock(mutex_);
  while (table->size() > count) {
    LetGoLocked(table->back());
    table->pop_back();
  }
}

void KvBlockPool::Hold(int32_t block) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++holders_[static_cast<size_t>(block)];
}

void KvBlockPool::LetGo(int32_t block) {
  std::lock_guard<std::mutex> lock(mutex_);
  LetGoLocked(block);
}

void KvBlockPool::LetGoLocked(int32_t block) {
  if (--holders_[static_cast<size_t>(block)] == 0) free_.push_back(block);
}

bool KvBlockPool::IsShared(int32_t block) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return holders_[static_cast<size_t>(block)] > 1;
}

void KvBlockPool::LetGoOfShared(size_t first, std::vector<int32_t>* table) {
  if (first >= table->size()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  size_t kept = first;
  for (size_t i = first; i < table->size(); ++i) {
    const int32_t block = (*table)[i];
    if (holders_[static_cast<size_t>(block)] > 1) {
      LetGoLocked(block);
    } else {
      (*table)[kept++] = block;
    }
  }
  table->resize(kept);
}

int64_t KvBlockPool::free() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(free_.size());
}

void BlockTable::Changed() {
  static std::atomic<uint64_t> versions{0};
  version_ = ++versions;
}

absl::Status BlockTable::Reserve(int64_t n_positions) {
  const size_t before = blocks_.size();
  absl::Status status = pool_->Grow(BlocksFor(n_positions), &blocks_);
  if (blocks_.size() != before) Changed();
  return status;
}

void BlockTable::Truncate(int64_t n_positions) {
  if (BlocksFor(n_positions) >= blocks_.size()) return;
  pool_->Shrink(BlocksFor(n_positions), &blocks_);
  Changed();
}

void BlockTable::LetGoOfShared(size_t first) {
  const size_t before = blocks_.size();
  pool_->LetGoOfShared(first, &blocks_);
  if (blocks_.size() != before) Changed();
}

void BlockTable::Adopt(std::span<const int32_t> blocks) {
  Changed();
  blocks_.reserve(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i < blocks_.size() && blocks_[i] == blocks[i]) continue;
    pool_->Hold(blocks[i]);
    if (i == blocks_.size()) {
      blocks_.push_back(blocks[i]);
    } else {
      pool_->LetGo(std::exchange(blocks_[i], blocks[i]));
    }
  }
}

absl::StatusOr<int32_t> BlockTable::Replace(size_t number) {
  std::vector<int32_t> other;
  if (absl::Status s = pool_->Grow(1, &other); !s.ok()) return s;
  const int32_t replaced = std::exchange(blocks_[number], other[0]);
  pool_->LetGo(replaced);
  Changed();
  return replaced;
}

int32_t BlockTable::SlotOf(int64_t position) const {
  const int32_t block = blocks_[static_cast<size_t>(position / kBlockPositions)];
  return static_cast<int32_t>(block * kBlockPositions + position % kBlockPositions);
}

}  // namespace trine
