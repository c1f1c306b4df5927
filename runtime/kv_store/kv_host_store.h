// KV blocks in memory, for those that a device's pool has no room for. Payloads are held, not
// copied, and belong to whoever holds them. Any thread may call anything.
#ifndef TRINE_RUNTIME_KV_STORE_KV_HOST_STORE_H_
#define TRINE_RUNTIME_KV_STORE_KV_HOST_STORE_H_

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
  uint64_t max_bytes = uint64_t{1} << 30;  // of payloads and tokens
  // Told of every block that has to make room, on the thread that needs it and without a lock: a
  // disk may take it.
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
  mutable std::mutex mutex_;  // guards what follows
  StoreIndex index_;
  absl::flat_hash_map<Hash256, Stored> stored_;
  absl::flat_hash_map<Hash256, std::weak_ptr<const KvSpace>> spaces_;  // of what is stored, by id
  KvStoreCounters counters_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_KV_STORE_KV_HOST_STORE_H_
