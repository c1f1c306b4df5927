// Keeps KV blocks in memory, for which a device's pool has no room. Shares payloads with its
// callers instead of copying them. Any thread may call any method.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/kv_store/kv_store.h"
#include "runtime/kv_store/store_index.h"

namespace trine {

struct KvHostOptions {
  uint64_t max_bytes = uint64_t{1} << 30;  // the most bytes of all payloads and tokens
  // Called for every evicted block, on the thread that needs the room. No lock is held, so it may
  // write to a disk.
  std::function<void(const KvBlock&, const std::shared_ptr<const KvPayload>&)> evicted;
};

class KvHostStore : public KvStore {
 public:
  explicit KvHostStore(KvHostOptions options);

  bool Contains(const Hash256& key) override;
  absl::StatusOr<std::shared_ptr<const KvPayload>> Get(const KvBlock& block) override;
  absl::Status Put(const KvBlock& block, std::shared_ptr<const KvPayload> payload) override;
  void Touch(const Hash256& key) override;
  KvStoreCounters counters() const override;

 private:
  struct Stored {
    std::shared_ptr<const KvSpace> space;
    Hash256 parent;
    uint64_t first_position = 0;
    std::vector<int32_t> tokens;
    std::shared_ptr<const KvPayload> payload;
  };

  static bool IsSame(const Stored& stored, const KvBlock& block);
  std::shared_ptr<const KvSpace> KeepSpace(const KvSpace& space);
  void TellEvicted(const std::vector<std::pair<Hash256, Stored>>& gone) const;

  const KvHostOptions options_;
  mutable std::mutex mutex_;  // guards all members after it
  StoreIndex index_;
  absl::flat_hash_map<Hash256, Stored> stored_;
  // Spaces of stored blocks, by id.
  absl::flat_hash_map<Hash256, std::weak_ptr<const KvSpace>> spaces_;
  KvStoreCounters counters_;
};

}  // namespace trine
