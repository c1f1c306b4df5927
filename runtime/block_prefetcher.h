// Blocks on disk that sequences which are still to come will ask for, brought into memory before
// they do (docs/kv.md). A thread of its own reads them, block by block, for whoever came first, as
// long as there is room and nobody waits for the disk. Thread-safe.
#ifndef TRINE_RUNTIME_BLOCK_PREFETCHER_H_
#define TRINE_RUNTIME_BLOCK_PREFETCHER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/block_stage.h"
#include "runtime/kv_store/kv_store.h"

namespace trine {

struct BlockPrefetchCounters {
  uint64_t begun = 0;   // prefetches
  uint64_t done = 0;    // of them, those that came to their end
  uint64_t cut = 0;     // and those that were stopped before
  uint64_t blocks = 0;  // brought from the disk
  uint64_t used = 0;    // times that one was there when it was asked for
  uint64_t bytes = 0;   // there now
  uint64_t ns = 0;      // spent with it
};

class BlockPrefetcher {
 public:
  struct Options {
    uint64_t max_bytes = 0;
    uint64_t block_bytes = 0;  // at most, of one
    std::function<absl::StatusOr<std::shared_ptr<const KvSpace>>(const std::string& owner)> space;
    KvStore* disk = nullptr;
    KvStore* host = nullptr;  // what it has is left there; null: there is none
    // So many blocks have been brought since `begin`; from the thread.
    std::function<void(std::chrono::steady_clock::time_point begin, int64_t blocks)> told;
  };
  // RESOURCE_EXHAUSTED: there is no thread. The stores outlive it.
  static absl::StatusOr<std::unique_ptr<BlockPrefetcher>> Start(Options options);
  ~BlockPrefetcher();
  BlockPrefetcher(const BlockPrefetcher&) = delete;
  BlockPrefetcher& operator=(const BlockPrefetcher&) = delete;

  // What somebody is going to ask for. The prefetcher outlives it.
  class Prefetch {
   public:
    // What was brought is let go of: whoever asked has it, or does not want it any more.
    ~Prefetch();
    Prefetch(const Prefetch&) = delete;
    Prefetch& operator=(const Prefetch&) = delete;

    // Nothing more is brought: it is asked for now. What is there stays.
    void Stop() noexcept;

   private:
    friend class BlockPrefetcher;
    struct Work;
    Prefetch(BlockPrefetcher* prefetcher, std::shared_ptr<Work> work)
        : prefetcher_(prefetcher), work_(std::move(work)) {}
    BlockPrefetcher* const prefetcher_;
    const std::shared_ptr<Work> work_;
  };
  // The full blocks of `tokens` from number `first` on, until one is not on the disk.
  std::unique_ptr<Prefetch> Begin(std::string owner, std::vector<int32_t> tokens, int64_t first);

  // Null where it is not there.
  std::shared_ptr<const KvPayload> Find(const KvBlock& block);
  // Somebody waits for the disk, or does no longer: no block is begun meanwhile.
  void Yield(bool waits);

  BlockPrefetchCounters counters() const;

 private:
  explicit BlockPrefetcher(Options options) : options_(std::move(options)) {}
  void Run();
  bool CanBring() const;
  // One block. False: there is no other.
  bool Bring(Prefetch::Work* work);
  void MakeBlocks(Prefetch::Work* work);

  const Options options_;
  BlockStage stage_;

  mutable std::mutex mutex_;  // guards what follows; the stage's is taken inside of it
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Prefetch::Work>> queue_;  // of which there is more to bring
  bool yields_ = false, ending_ = false;
  BlockPrefetchCounters counters_;

  std::thread thread_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_BLOCK_PREFETCHER_H_
