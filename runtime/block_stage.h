// Blocks that were brought from the disk for sequences that are still to come (BlockPrefetcher).
// Each is here as long as somebody expects it. Thread-safe.
#ifndef TRINE_RUNTIME_BLOCK_STAGE_H_
#define TRINE_RUNTIME_BLOCK_STAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/kv_store/hash256.h"
#include "runtime/kv_store/kv_form.h"
#include "runtime/kv_store/kv_space.h"

namespace trine {

class BlockStage {
 public:
  // One more who expects it. False: it is not here.
  bool Join(const KvBlock& block);
  // It is here from now on, for one who expects it; one that is here already stays.
  void Add(const KvBlock& block, std::shared_ptr<const KvPayload> payload);
  // One less who expects it.
  void Leave(const Hash256& key) noexcept;

  // Null where it is not here.
  std::shared_ptr<const KvPayload> Find(const KvBlock& block) const;
  uint64_t bytes() const;

 private:
  struct Staged {
    Hash256 space, parent;
    uint64_t first_position = 0;
    std::vector<int32_t> tokens;
    std::shared_ptr<const KvPayload> payload;
    size_t expected_by = 0;

    bool IsOf(const KvBlock& block) const;
  };

  mutable std::mutex mutex_;
  absl::flat_hash_map<Hash256, Staged> staged_;  // guarded by mutex_
  uint64_t bytes_ = 0;                           // likewise
};

}  // namespace trine

#endif  // TRINE_RUNTIME_BLOCK_STAGE_H_
