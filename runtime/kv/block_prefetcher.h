// Reads blocks that later sequences will ask for from disk into memory (docs/kv.md). The
// prefetcher's thread reads block by block, for the oldest prefetch first, as long as there is room
// and no fetch waits for the disk. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "runtime/kv_store/hash256.h"
#include "runtime/kv_store/kv_space.h"
#include "runtime/kv_store/kv_store.h"

namespace trine {

struct BlockPrefetchCounters {
  uint64_t begun = 0;   // prefetches begun
  uint64_t done = 0;    // prefetches that read all blocks, or up to one that is not on disk
  uint64_t cut = 0;     // prefetches that were stopped before that
  uint64_t blocks = 0;  // blocks read from disk
  uint64_t used = 0;    // times that a fetch found a prefetched block
  uint64_t bytes = 0;   // bytes held at present
  uint64_t ns = 0;      // time spent reading
};

// Holds blocks that were read from disk for later sequences (BlockPrefetcher). A block stays as
// long as a prefetch expects it. Thread-safe.
class BlockStage {
 public:
  // Adds an expectation of a block. Returns false, and adds none, if the stage does not have the
  // block.
  bool Join(const KvBlock& block);
  // Adds a block with one expectation. If the stage has the block already, it keeps its payload.
  void Add(const KvBlock& block, std::shared_ptr<const KvPayload> payload);
  // Removes an expectation; the last one removes the block.
  void Leave(const Hash256& key) noexcept;

  // Returns null if the stage does not have the block.
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
  uint64_t bytes_ = 0;                           // guarded by mutex_
};

class BlockPrefetcher {
 public:
  struct Options {
    uint64_t max_bytes = 0;
    uint64_t block_bytes = 0;  // the most bytes of one block
    std::function<absl::StatusOr<std::shared_ptr<const KvSpace>>(const std::string& owner)> space;
    KvStore* disk = nullptr;
    KvStore* host = nullptr;  // blocks that this store has are not read; null: no such store
    // Called on the prefetcher's thread when a prefetch has read its last block, with the number of
    // blocks read for it since `begin`.
    std::function<void(std::chrono::steady_clock::time_point begin, int64_t blocks)> told;
  };
  // Returns RESOURCE_EXHAUSTED if no thread can be started. The stores must outlive the prefetcher.
  static absl::StatusOr<std::unique_ptr<BlockPrefetcher>> Start(Options options);
  ~BlockPrefetcher();
  BlockPrefetcher(const BlockPrefetcher&) = delete;
  BlockPrefetcher& operator=(const BlockPrefetcher&) = delete;

  // Blocks that a sequence is going to ask for. The prefetcher must outlive it.
  class Prefetch {
   public:
    // Releases the blocks. Call it when the sequence has fetched them or no longer wants them.
    ~Prefetch();
    Prefetch(const Prefetch&) = delete;
    Prefetch& operator=(const Prefetch&) = delete;

    // Stops reading. Blocks in memory stay. Call it when the sequence begins its own fetch.
    void Stop() noexcept;

   private:
    friend class BlockPrefetcher;
    struct Work;
    Prefetch(BlockPrefetcher* prefetcher, std::shared_ptr<Work> work)
        : prefetcher_(prefetcher), work_(std::move(work)) {}
    BlockPrefetcher* const prefetcher_;
    const std::shared_ptr<Work> work_;
  };
  // Begins to read the full blocks of `tokens` from number `first` on, until a block is not on
  // disk.
  std::unique_ptr<Prefetch> Begin(std::string owner, std::vector<int32_t> tokens, int64_t first);

  // Returns a prefetched block, or null if it is not in memory.
  std::shared_ptr<const KvPayload> Find(const KvBlock& block);
  // Lets the prefetcher pause before its next block while `waits` is true: a fetch waits for the
  // disk.
  void Yield(bool waits);

  BlockPrefetchCounters counters() const;

 private:
  explicit BlockPrefetcher(Options options) : options_(std::move(options)) {}
  void Run();
  bool CanBring() const;
  // Reads one block. Returns whether there are more.
  bool Bring(Prefetch::Work* work);
  void MakeBlocks(Prefetch::Work* work);

  const Options options_;
  BlockStage stage_;

  mutable std::mutex mutex_;  // guards the members below; taken before the stage's mutex
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Prefetch::Work>> queue_;  // prefetches with more to read
  bool yields_ = false, ending_ = false;
  BlockPrefetchCounters counters_;

  std::thread thread_;
};

}  // namespace trine
