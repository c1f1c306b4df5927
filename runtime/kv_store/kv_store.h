// A place for KV blocks beside the device's pool: in memory (KvHostStore) or on a disk
// (KvDiskStore). Bounded; what is worth least goes first (StoreIndex). All calls from any thread;
// none holds a lock while it copies or waits for a disk.
#ifndef TRINE_RUNTIME_KV_STORE_KV_STORE_H_
#define TRINE_RUNTIME_KV_STORE_KV_STORE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/kv_store/kv_form.h"
#include "runtime/kv_store/kv_space.h"

namespace trine {

struct KvStoreCounters {
  uint64_t blocks = 0, bytes = 0;  // there now
  uint64_t hits = 0, misses = 0;   // of Get
  uint64_t writes = 0;             // blocks that Put has added
  uint64_t evictions = 0;          // given up for others
  uint64_t declined = 0;           // by Put: there was room only in place of blocks before them
  uint64_t damaged = 0;            // found to hold something else than they should, and removed
  uint64_t refused = 0;            // files that are not ours alone, and were left
  uint64_t errors = 0;             // of the disk
};

class KvStore {
 public:
  virtual ~KvStore() = default;

  // Whether Get is likely to find it.
  virtual bool Contains(const Hash256& key) = 0;
  // The block's bytes, if it is there and space, parent, position and tokens are the same: it
  // counts as used. NOT_FOUND where it is not there. Any other error says what is wrong with what
  // was found; it is as good as not there.
  virtual absl::StatusOr<std::shared_ptr<const KvPayload>> Get(const KvBlock& block) = 0;
  // When it returns OK the block is there, unless there was no room for it (`declined`): until it
  // has to make room for others. One that was there is left as it is, and counts as used. A block
  // may come before its parent does. INVALID_ARGUMENT: a payload that the space can't have.
  virtual absl::Status Put(const KvBlock& block, std::shared_ptr<const KvPayload> payload) = 0;
  // It was used, though not got from here.
  virtual void Touch(const Hash256& key) = 0;
  virtual KvStoreCounters counters() const = 0;
};

// What Put asks of its arguments.
absl::Status CheckKvBlock(const KvBlock& block, const KvPayload& payload);

}  // namespace trine

#endif  // TRINE_RUNTIME_KV_STORE_KV_STORE_H_
