// KV blocks beyond the devices' caches: in memory, on disk, or both (docs/kv.md). Sequences that
// share a space find there what others have read, after it has left the cache, after a device was
// lost, and after a restart.
//
// Reading, writing and changing forms is done by two threads of its own, while passes run: a
// sequence that has a prompt to read asks first (Begin), and takes part in passes when the answer
// is there. Every full block that a pass has filled is handed over (Keep). What a sequence that is
// still to come will ask for may be brought into memory before (Prefetch). Thread-safe.
#ifndef TRINE_RUNTIME_BLOCK_KEEPER_H_
#define TRINE_RUNTIME_BLOCK_KEEPER_H_

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
#include "runtime/block_prefetcher.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/kv_store/kv_codec.h"
#include "runtime/kv_store/kv_disk_store.h"
#include "runtime/kv_store/kv_host_store.h"
#include "runtime/kv_store/kv_space.h"
#include "runtime/model/kv_moves.h"

namespace trine {

struct BlockKeeperOptions {
  std::string folder;  // on disk; "": nothing is
  uint64_t disk_bytes = uint64_t{16} << 30;
  uint64_t host_bytes = 0;      // in memory; 0: nothing is
  uint64_t prefetch_bytes = 0;  // in memory, brought from the disk before it is asked for; 0: none
  KvForm form = KvForm::kRaw;
  // Blocks that came back from a form that loses bits may be used. What is computed behind them is
  // near what it would be, no more. Without it such a form is refused.
  bool lossy = false;
  std::function<void(const std::string&)> log;  // what is wrong; from any thread
  // As BlockPrefetcher's.
  std::function<void(std::chrono::steady_clock::time_point begin, int64_t blocks)> prefetched;

  bool any() const { return !folder.empty() || host_bytes != 0; }
};

struct BlockKeeperCounters {
  KvStoreCounters host, disk;
  uint64_t found_blocks = 0;  // that sequences asked for and were given
  uint64_t found_bytes = 0;
  uint64_t dropped_blocks = 0;  // not kept, as too many were waiting to be
  uint64_t fetch_ns = 0;        // spent with what was asked for
  BlockPrefetchCounters prefetch;
};

class BlockKeeper {
 public:
  // `fields`: all but the owner. A folder needs the file's hash, which reads all of it once;
  // remembered in the folder. `block_bytes`: of the caches as they are, which the layout has to
  // give too.
  static absl::StatusOr<std::unique_ptr<BlockKeeper>> Create(const gguf::File& file,
                                                             KvSpaceFields fields,
                                                             uint64_t block_bytes, int threads,
                                                             const BlockKeeperOptions& options);
  // What was handed over is written.
  ~BlockKeeper();
  BlockKeeper(const BlockKeeper&) = delete;
  BlockKeeper& operator=(const BlockKeeper&) = delete;

  // Blocks that somebody waits for.
  class Fetch {
   public:
    bool done() const { return done_.load(std::memory_order_acquire); }
    // When it is done: from `first` on, without a gap, as many as there were.
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
  // The full blocks of `tokens` from number `first` on. `told` is called when it is done, from a
  // thread of the keeper's.
  std::shared_ptr<Fetch> Begin(const std::string& space, std::vector<int32_t> tokens, int64_t first,
                               std::function<void()> told);
  // Those of them that the disk has are brought into memory, until the result is let go of. Null
  // where none are. The keeper outlives it.
  std::unique_ptr<BlockPrefetcher::Prefetch> Prefetch(const std::string& space,
                                                      std::vector<int32_t> tokens, int64_t first);
  bool prefetches() const { return prefetcher_ != nullptr; }
  // The last of the full blocks that `tokens` are.
  void Keep(const std::string& space, std::vector<int32_t> tokens,
            std::shared_ptr<const KvBlockBytes> bytes);
  // Returns when all that has been handed over so far has been kept.
  void Flush();

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
  std::unique_ptr<KvHostStore> host_;            // null: none
  std::unique_ptr<KvDiskStore> disk_;            // likewise
  std::unique_ptr<BlockPrefetcher> prefetcher_;  // likewise

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable asked_, handed_over_, kept_;
  std::map<std::string, std::shared_ptr<const KvSpace>> spaces_;
  std::deque<std::shared_ptr<Fetch>> fetches_;
  std::deque<Kept> waiting_;
  uint64_t waiting_bytes_ = 0;
  bool writing_ = false;
  bool ending_ = false;
  BlockKeeperCounters counters_;  // but for the stores' own

  std::thread reader_, writer_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_BLOCK_KEEPER_H_
