// A model ready to be used: file, tokenizer, devices, plans, KV cache. Sessions are opened on it.
// Thread-safe; outlives its sessions.
#ifndef TRINE_RUNTIME_ENGINE_H_
#define TRINE_RUNTIME_ENGINE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/batcher.h"
#include "runtime/block_keeper.h"
#include "runtime/constraint/constraint.h"
#include "runtime/device_set.h"
#include "runtime/embedding/block_budget.h"
#include "runtime/engine_options.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/model.h"
#include "runtime/model_keeper.h"
#include "runtime/placed_model.h"
#include "runtime/placement/placer.h"
#include "runtime/prefix_cache.h"
#include "runtime/sampling/lane.h"
#include "runtime/sequence.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/trace_file.h"

namespace trine {

class Engine {
 public:
  static absl::StatusOr<std::unique_ptr<Engine>> Load(const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const gguf::File& file() const { return *file_; }
  // Where it is now: a model that loses a device is placed anew.
  std::shared_ptr<const Model> model() const;
  // The same, for whoever only wants to tell of it: a model that is held can't be let go of.
  PlacedModel placed() const;
  uint64_t placements() const { return placements_; }  // so far
  uint64_t losses() const { return losses_; }          // of devices, so far
  // How it was placed when it was loaded, and why; none where nobody asked for it.
  const std::optional<PlacementReport>& plan() const { return plan_; }
  // Devices that failed since it was loaded, or while it was: the model goes on without them.
  std::vector<LostDevice> lost_devices() const;
  // Not OK: no device is left, and nothing is computed until one is taken in again.
  absl::Status ended() const { return batcher_->ended(); }
  // Takes a device that was lost in again, or "": all of them. Waits until no pass is under way;
  // the next one goes over the model as it was asked for, and sequences read their tokens again.
  // UNAVAILABLE, with the reason, for a device that can't be opened, or that a pass still hangs in:
  // all stays as it is then, or goes on with those that could. FAILED_PRECONDITION for one that is
  // not lost. Not from a callback.
  absl::Status Readmit(const std::string& device);
  // A new request, of which nothing has been computed yet, is about to be evaluated: devices are
  // taken in again whose time has come.
  void BeginRequest();
  const ModelConfig& config() const { return config_; }
  const SegmentLimits& limits() const { return limits_; }
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }
  // The tokenizer's vocabulary ready for constraints, made by the first who asks.
  const ConstraintVocabulary& constraint_vocabulary() const;
  Lane& lane() const { return *lane_; }
  int64_t context() const { return limits_.max_context; }
  const Inventory& inventory() const { return devices_->inventory(); }
  uint32_t threads() const { return devices_->host().table()->worker_count; }
  bool embeddings() const { return limits_.embeddings; }  // and nothing else
  bool can_embed() const { return limits_.embeddings || limits_.hidden_rows; }
  // Times of single ops from here to the stop, by name; none from backends that give none. For one
  // measurer at a time.
  void StartOpTimes() { devices_->host().StartOpTimes(); }
  std::vector<OpTime> StopOpTimes() { return devices_->host().StopOpTimes(); }
  // Of the cache's blocks, among the calls of Embed under way.
  BlockBudget& text_budget() const { return *text_budget_; }

  // An empty sequence. Any number may be open; the cache's blocks go to who needs them first.
  std::unique_ptr<Sequence> NewSequence();
  // See Batcher.
  absl::Status Evaluate(std::span<Sequence* const> sequences) {
    return batcher_->Evaluate(sequences);
  }
  absl::Status EvaluateSome(std::span<Sequence* const> sequences) {
    return batcher_->EvaluateSome(sequences);
  }
  void Drain(std::span<Sequence* const> sequences) { batcher_->Drain(sequences); }
  // Of the segments of the model as it is placed now, in order; none while it is placed anew.
  std::vector<SegmentCounters> segments() const { return batcher_->counters(); }
  HostTimes host_times() const { return batcher_->host_times(); }

  // Of blocks shared between sequences, and of all blocks.
  PrefixCacheCounters prefix_counters() const { return prefix_cache_->counters(); }

  // Of blocks kept beyond the caches; none where nobody asked for it.
  std::optional<BlockKeeperCounters> keeper_counters() const;
  // A sequence of this space that is still to come will begin with this prompt: what of it is kept
  // on disk, and not in the caches, is brought into memory until the result is let go of. Null
  // where nothing is; so it is always where prefetches() is false. The engine outlives it.
  std::unique_ptr<BlockPrefetcher::Prefetch> Prefetch(const std::string& space,
                                                      std::span<const int32_t> prompt);
  bool prefetches() const { return block_keeper_ != nullptr && block_keeper_->prefetches(); }
  // Returns when all blocks that were filled so far are kept.
  void FlushBlocks();

  // Null where nobody asked for one.
  TraceFile* trace() const { return trace_.get(); }
  // What has been traced so far. Also done when the engine goes; an error that nobody has been told
  // of is logged then.
  absl::Status WriteTrace();

 private:
  Engine() = default;
  // All three on the thread that leads in the batcher, while no pass is under way.
  absl::StatusOr<std::shared_ptr<Model>> Recover(const absl::Status& failure);
  absl::StatusOr<std::shared_ptr<Model>> Install(const char* event, const std::string& hung,
                                                 const Batcher::LoadNext& load);
  absl::Status MakeBlockKeeper(const EngineOptions& options);
  void TellOfLost();
  void Show(std::shared_ptr<Model> model);
  absl::Status Readmit(const std::function<std::vector<std::string>()>& choose,
                       std::chrono::milliseconds most);
  // Destroys it, unless a device does not come back from that, or a pass is in it still: then it is
  // left behind.
  void Retire(std::shared_ptr<Model> model, const std::string& hung);

  LogSink log_;
  std::unique_ptr<TraceFile> trace_;
  std::atomic<bool> told_of_trace_ = false;  // that it can't be written
  std::shared_ptr<const gguf::File> file_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  OwnedDevices devices_;
  ModelConfig config_;
  SegmentLimits limits_;
  std::unique_ptr<Placer> placer_;  // the keeper's
  std::optional<PlacementReport> plan_;
  std::unique_ptr<ModelKeeper> keeper_;                 // the batcher's leader's, once it is loaded
  std::chrono::steady_clock::time_point told_of_lost_;  // likewise: traced up to then
  std::mutex readmit_mutex_;                            // held by whoever does it by itself
  mutable std::mutex model_mutex_;
  std::shared_ptr<Model> model_;               // guarded by model_mutex_
  PlacedModel placed_;                         // likewise
  std::vector<LostDevice> lost_;               // likewise
  std::optional<Readmission::Time> next_try_;  // likewise: of a device that was lost
  std::atomic<uint64_t> placements_ = 0, losses_ = 0;
  bool lock_memory_ = false;
  std::shared_ptr<KvBlockPool> blocks_;
  std::unique_ptr<PrefixCache> prefix_cache_;
  std::unique_ptr<BlockBudget> text_budget_;
  std::unique_ptr<Batcher> batcher_;
  std::unique_ptr<BlockKeeper> block_keeper_;  // null where nobody asked for one
  std::unique_ptr<Lane> lane_;
  mutable std::once_flag constraint_once_;
  mutable ConstraintVocabulary constraint_vocabulary_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_ENGINE_H_
