#include "runtime/kv_store/kv_host_store.h"

#include <algorithm>
#include <utility>

namespace trine {
namespace {

constexpr size_t kSpacesBeforeSweep = 1024;

}  // namespace

KvHostStore::KvHostStore(KvHostOptions options)
    : options_(std::move(options)), index_(options_.max_bytes) {}

bool KvHostStore::IsSame(const Stored& stored, const KvBlock& block) {
  return stored.space->id() == block.space->id() && stored.parent == block.parent &&
         stored.first_position == block.first_position &&
         std::equal(stored.tokens.begin(), stored.tokens.end(), block.tokens.begin(),
                    block.tokens.end());
}

std::shared_ptr<const KvSpace> KvHostStore::KeepSpace(const KvSpace& space) {
  if (spaces_.size() >= kSpacesBeforeSweep) {
    absl::erase_if(spaces_, [](const auto& known) { return known.second.expired(); });
  }
  std::weak_ptr<const KvSpace>& known = spaces_[space.id()];
  std::shared_ptr<const KvSpace> kept = known.lock();
  if (kept == nullptr) known = kept = std::make_shared<const KvSpace>(space);
  return kept;
}

bool KvHostStore::Contains(const Hash256& key) {
  std::lock_guard lock(mutex_);
  return index_.Has(key);
}

absl::StatusOr<std::shared_ptr<const KvPayload>> KvHostStore::Get(const KvBlock& block) {
  std::lock_guard lock(mutex_);
  const auto at = stored_.find(block.key);
  if (at == stored_.end() || !IsSame(at->second, block)) {
    ++counters_.misses;
    return absl::NotFoundError("the block is not there");
  }
  ++counters_.hits;
  index_.Use(block.key);
  return at->second.payload;
}

absl::Status KvHostStore::Put(const KvBlock& block, std::shared_ptr<const KvPayload> payload) {
  if (absl::Status s = CheckKvBlock(block, *payload); !s.ok()) return s;
  const StoreItem item = {block.key, block.parent, block.first_position, block.space->block_bytes(),
                          payload->size + block.tokens.size_bytes()};
  std::vector<std::pair<Hash256, Stored>> gone;
  {
    std::lock_guard lock(mutex_);
    std::vector<Hash256> keys;
    const StoreIndex::Answer answer = index_.Promise(item, &keys);
    for (const Hash256& key : keys) {
      const auto at = stored_.find(key);
      gone.emplace_back(key, std::move(at->second));
      stored_.erase(at);
    }
    counters_.evictions += keys.size();
    if (answer == StoreIndex::Answer::kDeclined) ++counters_.declined;
    if (answer == StoreIndex::Answer::kRoom) {
      index_.Arrived(item);
      stored_[block.key] = {KeepSpace(*block.space),
                            block.parent,
                            block.first_position,
                            {block.tokens.begin(), block.tokens.end()},
                            std::move(payload)};
      ++counters_.writes;
    }
  }
  TellEvicted(gone);
  return absl::OkStatus();
}

void KvHostStore::TellEvicted(const std::vector<std::pair<Hash256, Stored>>& gone) const {
  if (!options_.evicted) return;
  for (const auto& [key, stored] : gone) {
    options_.evicted({stored.space.get(), key, stored.parent, stored.first_position, stored.tokens},
                     stored.payload);
  }
}

void KvHostStore::Touch(const Hash256& key) {
  std::lock_guard lock(mutex_);
  index_.Use(key);
}

KvStoreCounters KvHostStore::counters() const {
  std::lock_guard lock(mutex_);
  KvStoreCounters counters = counters_;
  counters.blocks = index_.blocks();
  counters.bytes = index_.bytes();
  return counters;
}

}  // namespace trine
