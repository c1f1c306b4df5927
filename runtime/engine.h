// A model ready to be used: file, tokenizer, devices, plans, KV cache. Sessions are opened on it.
// Thread-safe; outlives its sessions.
#ifndef TRINE_RUNTIME_ENGINE_H_
#define TRINE_RUNTIME_ENGINE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/batcher.h"
#include "runtime/constraint/constraint.h"
#include "runtime/device_set.h"
#include "runtime/embedding/block_budget.h"
#include "runtime/engine_options.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/model.h"
#include "runtime/model_keeper.h"
#include "runtime/placement/placer.h"
#include "runtime/sampling/lane.h"
#include "runtime/sequence.h"
#include "runtime/tokenizer/tokenizer.h"

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
  // Devices that failed since it was loaded, or while it was: the model goes on without them.
  std::vector<LostDevice> lost_devices() const;
  const ModelConfig& config() const { return config_; }
  const SegmentLimits& limits() const { return limits_; }
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }
  // The tokenizer's vocabulary ready for constraints, made by the first who asks.
  const ConstraintVocabulary& constraint_vocabulary() const;
  Lane& lane() const { return *lane_; }
  int64_t context() const { return limits_.max_context; }
  const Inventory& inventory() const { return devices_->inventory(); }
  uint32_t threads() const { return devices_->host().table()->worker_count; }
  bool embeddings() const { return limits_.embeddings; }
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
  // Of the segments of the model as it is placed now, in order.
  std::vector<StageCounters> stage_counters() const { return batcher_->counters(); }

 private:
  Engine() = default;
  absl::StatusOr<std::shared_ptr<Model>> Recover(const absl::Status& failure);

  std::shared_ptr<const gguf::File> file_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<DeviceSet> devices_;
  ModelConfig config_;
  SegmentLimits limits_;
  std::unique_ptr<Placer> placer_;              // the keeper's
  std::unique_ptr<ModelKeeper> keeper_;         // the batcher's leader's, once it is loaded
  std::vector<std::weak_ptr<void>> abandoned_;  // lives of models that something hangs in
  mutable std::mutex model_mutex_;
  std::shared_ptr<Model> model_;  // guarded by model_mutex_
  std::vector<LostDevice> lost_;  // likewise
  bool lock_memory_ = false;
  std::shared_ptr<KvBlockPool> blocks_;
  std::unique_ptr<BlockBudget> text_budget_;
  std::unique_ptr<Batcher> batcher_;
  std::unique_ptr<Lane> lane_;
  mutable std::once_flag constraint_once_;
  mutable ConstraintVocabulary constraint_vocabulary_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_ENGINE_H_
