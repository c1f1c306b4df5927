// Keeps KV blocks outside of devices: in memory, on disk, or both (docs/kv.md). So the sequences of
// a space need not evaluate tokens again that another sequence of the space has evaluated, even if
// the blocks have left the KV cache, a device was lost, or the program was restarted.
//
// Two threads of the keeper read, write and convert blocks while passes run. A sequence with a
// prompt first begins a fetch (Begin), and takes part in passes when the fetch is done. The batcher
// hands over every block that a pass has filled (Keep). Blocks for a later sequence can be read
// from disk into memory early (Prefetch). Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/kv/block_prefetcher.h"
#include "runtime/kv_store/kv_codec.h"
#include "runtime/kv_store/kv_disk_store.h"
#include "runtime/kv_store/kv_host_store.h"
#include "runtime/kv_store/kv_space.h"
#include "runtime/model/run/kv_blocks.h"

namespace trine {

// Says where blocks are kept, and how.
struct BlockKeeperOptions {
  std::string folder;                        // the folder on disk; "": keeps none on disk
  uint64_t disk_bytes = uint64_t{16} << 30;  // the most bytes on disk
  uint64_t host_bytes = 0;                   // the most bytes in memory; 0: keeps none in memory
  uint64_t prefetch_bytes = 0;  // the most prefetched bytes in memory; 0: no prefetching
  KvForm form = KvForm::kRaw;
  // Allows forms that lose bits. With such blocks the results of later tokens are not exact.
  bool lossy = false;
  std::function<void(const std::string&)> log;  // reports problems; called on any thread
  // See BlockPrefetcher::Options::told.
  std::function<void(std::chrono::steady_clock::time_point begin, int64_t blocks)> prefetched;

  // Returns whether blocks are kept at all.
  bool any() const { return !folder.empty() || host_bytes != 0; }
};

struct BlockKeeperCounters {
  KvStoreCounters host, disk;
  uint64_t found_blocks = 0;  // blocks that fetches returned
  uint64_t found_bytes = 0;
  uint64_t dropped_blocks = 0;  // blocks not kept, because too many were waiting
  uint64_t fetch_ns = 0;        // time spent on fetches
  BlockPrefetchCounters prefetch;
};

class BlockKeeper {
 public:
  // `fields` has all fields but the owner. If there is a folder, hashes the whole file the first
  // time; the folder remembers the hash. `block_bytes` is the size of a block in the KV caches;
  // fails if the layout in `fields` gives another size.
  static absl::StatusOr<std::unique_ptr<BlockKeeper>> Create(const gguf::File& file,
                                                             KvSpaceFields fields,
                                                             uint64_t block_bytes, int threads,
                                                             const BlockKeeperOptions& options);
  // Keeps the blocks that were handed over before.
  ~BlockKeeper();
  BlockKeeper(const BlockKeeper&) = delete;
  BlockKeeper& operator=(const BlockKeeper&) = delete;

  // A fetch of blocks for a sequence.
  class Fetch {
   public:
    bool done() const { return done_.load(std::memory_order_acquire); }
    // Return the blocks that were found, from number first() on without a gap. REQUIRES: done().
    int64_t first() const { return first_; }
    const std::vector<std::shared_ptr<const KvBlockBytes>>& blocks() const { return blocks_; }

   private:
    friend class BlockKeeper;
    std::string space_;
    std::vector<int32_t> tokens_;
    int64_t first_ = 0;
    std::vector<std::shared_ptr<const KvBlockBytes>> blocks_;
    std::function<void()> told_;
    std::atomic<bool> done_ = false;
  };
  // Begins to fetch the full blocks of `tokens` from number `first` on. `told` is called on a
  // thread of the keeper when the fetch is done.
  std::shared_ptr<Fetch> Begin(const std::string& space, std::vector<int32_t> tokens, int64_t first,
                               std::function<void()> told);
  // Begins to read the full blocks of `tokens`, from number `first` on, from disk into memory. They
  // stay in memory until the result is destroyed. Returns null if prefetches() is false. The keeper
  // must outlive the result.
  std::unique_ptr<BlockPrefetcher::Prefetch> Prefetch(const std::string& space,
                                                      std::vector<int32_t> tokens, int64_t first);
  bool prefetches() const { return prefetcher_ != nullptr; }
  // Hands over the last block of `tokens`, with the block's bytes. REQUIRES: `tokens` end with a
  // full block.
  void Keep(const std::string& space, std::vector<int32_t> tokens,
            std::shared_ptr<const KvBlockBytes> bytes);

  BlockKeeperCounters counters() const;

 private:
  struct Kept {
    std::string space;
    std::vector<int32_t> tokens;
    std::shared_ptr<const KvBlockBytes> bytes;
  };

  BlockKeeper(KvSpaceFields fields, KvCodec codec, const BlockKeeperOptions& options)
      : fields_(std::move(fields)), codec_(codec), options_(options) {}
  absl::StatusOr<std::shared_ptr<const KvSpace>> SpaceOf(const std::string& owner);
  void Read();
  void Write();
  void Find(Fetch* fetch);
  std::shared_ptr<const KvPayload> Get(const KvBlock& block);
  void Store(const Kept& kept);
  void Log(const absl::Status& status) const;

  const KvSpaceFields fields_;
  const KvCodec codec_;
  const BlockKeeperOptions options_;
  std::unique_ptr<KvHostStore> host_;            // null: keeps none in memory
  std::unique_ptr<KvDiskStore> disk_;            // null: keeps none on disk
  std::unique_ptr<BlockPrefetcher> prefetcher_;  // null: no prefetching

  mutable std::mutex mutex_;  // guards the members below, except the threads
  std::condition_variable asked_, handed_over_;
  std::map<std::string, std::shared_ptr<const KvSpace>> spaces_;
  std::deque<std::shared_ptr<Fetch>> fetches_;
  std::deque<Kept> waiting_;
  uint64_t waiting_bytes_ = 0;
  bool ending_ = false;
  BlockKeeperCounters counters_;  // without the counters of stores and prefetcher

  std::thread reader_, writer_;
};

}  // namespace trine
