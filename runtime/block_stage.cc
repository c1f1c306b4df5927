#include "runtime/block_stage.h"

#include <algorithm>
#include <utility>

namespace trine {

// As in the stores, no key is trusted alone.
bool BlockStage::Staged::IsOf(const KvBlock& block) const {
  return space == block.space->id() && parent == block.parent &&
         first_position == block.first_position && std::ranges::equal(tokens, block.tokens);
}

bool BlockStage::Join(const KvBlock& block) {
  std::lock_guard lock(mutex_);
  const auto found = staged_.find(block.key);
  if (found == staged_.end() || !found->second.IsOf(block)) return false;
  ++found->second.expected_by;
  return true;
}

void BlockStage::Add(const KvBlock& block, std::shared_ptr<const KvPayload> payload) {
  std::lock_guard lock(mutex_);
  std::vector<int32_t> tokens(block.tokens.begin(), block.tokens.end());
  Staged& staged = staged_[block.key];
  ++staged.expected_by;
  if (staged.payload != nullptr) return;
  staged.space = block.space->id();
  staged.parent = block.parent;
  staged.first_position = block.first_position;
  staged.tokens = std::move(tokens);
  staged.payload = std::move(payload);
  bytes_ += staged.payload->size;
}

void BlockStage::Leave(const Hash256& key) noexcept {
  std::shared_ptr<const KvPayload> gone;  // when the lock is no longer held
  std::lock_guard lock(mutex_);
  const auto found = staged_.find(key);
  if (found == staged_.end() || --found->second.expected_by > 0) return;
  gone = std::move(found->second.payload);
  bytes_ -= gone->size;
  staged_.erase(found);
}

std::shared_ptr<const KvPayload> BlockStage::Find(const KvBlock& block) const {
  std::lock_guard lock(mutex_);
  const auto found = staged_.find(block.key);
  return found == staged_.end() || !found->second.IsOf(block) ? nullptr : found->second.payload;
}

uint64_t BlockStage::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace trine
