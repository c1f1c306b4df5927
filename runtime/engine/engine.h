// A model that is ready to be used: its file, tokenizer, devices, plans and KV cache. Sessions are
// opened on an engine and must not outlive it. Thread-safe.
#pragma once

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
#include "runtime/batch/batcher.h"
#include "runtime/batch/sequence.h"
#include "runtime/constraint/mask/constraint.h"
#include "runtime/embedding/block_budget.h"
#include "runtime/engine/engine_options.h"
#include "runtime/engine/expert_stats.h"
#include "runtime/engine/model_keeper.h"
#include "runtime/engine/model_setup.h"
#include "runtime/engine/trace_file.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/kv/block_keeper.h"
#include "runtime/kv/prefix_cache.h"
#include "runtime/model/experts/expert_hits.h"
#include "runtime/model/run/model.h"
#include "runtime/placement/device_set.h"
#include "runtime/placement/placer.h"
#include "runtime/sampling/lane.h"
#include "runtime/tokenizer/tokenizer.h"

namespace trine {

class Engine {
 public:
  // Opens the model's file and the devices, places the model, and loads it.
  static absl::StatusOr<std::unique_ptr<Engine>> Load(const EngineOptions& options);
  // Writes the trace and the counts of experts, if files keep them. May wait up to 2 s for other
  // engines that write counts to the same folder.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const gguf::File& file() const { return *file_; }
  // Returns the model in its current placement. When a device is lost, another Model replaces it.
  std::shared_ptr<const Model> model() const;
  // Describes the placement without holding the model: a model that is held can't be destroyed.
  PlacedModel placed() const;
  uint64_t placements() const { return placements_; }  // the number of placements so far
  uint64_t losses() const { return losses_; }          // the number of lost devices so far
  // The placement at loading and its reasons; nullopt without EngineOptions::explain.
  const std::optional<PlacementReport>& plan() const { return plan_; }
  // Returns the devices that failed during or after loading, and without which the model runs.
  std::vector<LostDevice> lost_devices() const;
  // Returns an error if no device is left. Then nothing is computed until one is readmitted.
  absl::Status ended() const { return batcher_->ended(); }
  // Readmits a lost device, or all lost devices if `device` is "". Waits until no pass is in
  // flight, then loads the model as it was asked for; sequences replay their tokens. Returns
  // UNAVAILABLE, with the reason, if a device can't be opened or if a pass still hangs in it; the
  // other devices are readmitted nevertheless. Returns FAILED_PRECONDITION for a device that is not
  // lost. Must not be called from a callback.
  absl::Status Readmit(const std::string& device);
  // Readmits lost devices whose next try is due. Call it before a new request, while nothing of the
  // request has been computed.
  void BeginRequest();
  const ModelConfig& config() const { return config_; }
  const SegmentLimits& limits() const { return limits_; }
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }
  // Returns the vocabulary for constraints. The first call makes it.
  const ConstraintVocabulary& constraint_vocabulary() const;
  Lane& lane() const { return *lane_; }
  int64_t context() const { return limits_.max_context; }
  const Inventory& inventory() const { return devices_->inventory(); }
  uint32_t threads() const { return devices_->host().table()->worker_count; }
  // Returns whose threads they are: "own", "openmp" or "host".
  std::string team_name() const { return devices_->host().team()->name(); }
  bool embeddings() const { return limits_.embeddings; }  // true: the engine can only embed
  bool can_embed() const { return limits_.embeddings || limits_.hidden_rows; }
  // Measure the time that each op takes between the two calls, by the op's name. StopOpTimes
  // returns nothing if the backend can't measure that. For one caller at a time.
  void StartOpTimes() { devices_->host().StartOpTimes(); }
  std::vector<OpTime> StopOpTimes() { return devices_->host().StopOpTimes(); }
  // Divides the KV cache's blocks among concurrent calls of Embed.
  BlockBudget& text_budget() const { return *text_budget_; }

  // Returns an empty sequence. Any number may be open; blocks go to the sequence that needs them
  // first.
  std::unique_ptr<Sequence> NewSequence();
  // Evaluate pending tokens of sequences. runtime/batch/batcher.h explains these calls.
  absl::Status Evaluate(std::span<Sequence* const> sequences) {
    return batcher_->Evaluate(sequences);
  }
  absl::Status EvaluateSome(std::span<Sequence* const> sequences) {
    return batcher_->EvaluateSome(sequences);
  }
  void Drain(std::span<Sequence* const> sequences) { batcher_->Drain(sequences); }
  // Returns the counters of the placed segments, in order. Returns none while the model is being
  // placed again.
  std::vector<SegmentCounters> segments() const { return batcher_->counters(); }
  HostTimes host_times() const { return batcher_->host_times(); }

  // Returns how often tokens chose experts: counters of this engine, and hits with those that were
  // known before. Without EngineOptions::expert_stats only the choices that the host sees anyway
  // are counted. For a model without experts it has none.
  const ExpertHits& expert_hits() const { return *hits_; }
  // Returns the hits of this engine alone.
  ExpertCounts counted_experts() const { return hits_->Snapshot().Since(hits_before_); }

  // Returns counters of the blocks that sequences share, and of all blocks.
  PrefixCacheCounters prefix_counters() const { return prefix_cache_->counters(); }

  // Returns counters of the block keeper, or nullopt if there is none.
  std::optional<BlockKeeperCounters> keeper_counters() const;
  // Brings blocks from disk into memory for a later sequence of this space, which will begin with
  // `prompt`. Keeps them there until the result is destroyed. Returns null if the prefix cache has
  // all of these blocks, or if prefetches() is false. The engine must outlive the result.
  std::unique_ptr<BlockPrefetcher::Prefetch> Prefetch(const std::string& space,
                                                      std::span<const int32_t> prompt);
  bool prefetches() const { return block_keeper_ != nullptr && block_keeper_->prefetches(); }

  TraceFile* trace() const { return trace_.get(); }  // null: tracing is off
  // Writes what has been traced. The destructor also does that; it logs an error unless a call has
  // returned the error already.
  absl::Status WriteTrace();

 private:
  Engine() = default;
  // Loads the model on the devices that are left after `failure`. Called on the batcher leader's
  // thread while no pass is in flight.
  absl::StatusOr<std::shared_ptr<Model>> Recover(const absl::Status& failure);
  absl::StatusOr<std::shared_ptr<Model>> Install(const char* event, const std::string& hung,
                                                 const Batcher::LoadNext& load);
  absl::Status MakeBlockKeeper(const EngineOptions& options);
  void TellOfLost();
  void Show(std::shared_ptr<Model> model);
  absl::Status Readmit(const std::function<std::vector<std::string>()>& choose,
                       std::chrono::milliseconds most);
  // Destroys the model. Leaks it instead if a device would not return from that, or if a pass still
  // uses the model.
  void Retire(std::shared_ptr<Model> model, const std::string& hung);

  LogSink log_;
  std::unique_ptr<TraceFile> trace_;
  std::atomic<bool> told_of_trace_ = false;  // a call has returned why the trace can't be written
  std::shared_ptr<const gguf::File> file_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<ExpertHits> hits_;
  ExpertCounts hits_before_;                   // when the model was loaded
  std::unique_ptr<ExpertStats> expert_stats_;  // null: no file keeps the hits
  OwnedDevices devices_;
  ModelConfig config_;
  SegmentLimits limits_;
  std::unique_ptr<Placer> placer_;  // used by model_keeper_
  std::optional<PlacementReport> plan_;
  std::unique_ptr<ModelKeeper> model_keeper_;  // after loading, used by the batcher's leader only
  std::chrono::steady_clock::time_point told_of_lost_;  // earlier losses are traced; leader only
  std::mutex readmit_mutex_;                            // held during automatic readmission
  mutable std::mutex model_mutex_;
  std::shared_ptr<Model> model_;               // guarded by model_mutex_
  PlacedModel placed_;                         // guarded by model_mutex_
  std::vector<LostDevice> lost_;               // guarded by model_mutex_
  std::optional<Readmission::Time> next_try_;  // guarded by model_mutex_: when a device is due
  std::atomic<uint64_t> placements_ = 0, losses_ = 0;
  bool lock_memory_ = false;
  std::shared_ptr<KvBlockPool> blocks_;
  std::unique_ptr<PrefixCache> prefix_cache_;
  std::unique_ptr<BlockBudget> text_budget_;
  std::unique_ptr<Batcher> batcher_;
  std::unique_ptr<BlockKeeper> block_keeper_;  // null: blocks are not kept
  std::unique_ptr<Lane> lane_;
  mutable std::once_flag constraint_once_;
  mutable ConstraintVocabulary constraint_vocabulary_;
};

}  // namespace trine
