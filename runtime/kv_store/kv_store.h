// A store of KV blocks outside of the device's pool: in memory (KvHostStore) or on disk
// (KvDiskStore). Its size is bounded; it removes the blocks of least worth first (StoreIndex). Any
// thread may call any method; no method holds a lock while it copies or waits for a disk.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/kv_store/kv_space.h"

namespace trine {

struct KvStoreCounters {
  uint64_t blocks = 0, bytes = 0;  // blocks that are in the store now, and their size
  uint64_t hits = 0, misses = 0;   // calls of Get that found a block, or found none
  uint64_t writes = 0;             // blocks that Put has added
  uint64_t evictions = 0;          // blocks that were removed to make room
  uint64_t declined = 0;           // blocks that Put has not added, because there was no room
  uint64_t damaged = 0;            // blocks that had wrong contents and were removed
  uint64_t refused = 0;            // files not used, because other users may have written them
  uint64_t errors = 0;             // disk errors
};

class KvStore {
 public:
  virtual ~KvStore() = default;

  // Returns whether Get is likely to find the block.
  virtual bool Contains(const Hash256& key) = 0;
  // Returns the bytes of a block that is in the store with the same space, parent, position and
  // tokens, and counts the block as used. Returns NOT_FOUND if it is not in the store. Any other
  // error says what is wrong with the stored block.
  virtual absl::StatusOr<std::shared_ptr<const KvPayload>> Get(const KvBlock& block) = 0;
  // Stores a block. It stays until it has to make room for other blocks. Returns OK also if there
  // is no room for it (`declined`). Leaves a block that is in the store unchanged and counts it as
  // used. A block may come before its parent. Returns INVALID_ARGUMENT if the space can't have this
  // payload.
  virtual absl::Status Put(const KvBlock& block, std::shared_ptr<const KvPayload> payload) = 0;
  // Counts a block as used that did not come from this store.
  virtual void Touch(const Hash256& key) = 0;
  virtual KvStoreCounters counters() const = 0;
};

}  // namespace trine
