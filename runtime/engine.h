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
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/model.h"
#include "runtime/model_keeper.h"
#include "runtime/sampling/lane.h"
#include "runtime/sequence.h"
#include "runtime/tokenizer/tokenizer.h"

namespace trine {

// What a model is split into over devices (docs/split-modes.md).
enum class SplitMode { kLayer, kRow, kNone };

struct EngineOptions {
  std::string model_path;
  int64_t context = kDefaultContext;  // positions of a sequence; 0: the model's own
  int64_t batch_tokens = 512;         // in one pass
  int64_t max_sequences = 1;          // in one pass; the cache holds as many full ones
  uint32_t threads = 0;               // 0: one per core
  std::string kv_type_k = "f16";      // f16, f32, bf16, q8_0
  std::string kv_type_v = "f16";
  std::string tensor_split;  // "": everything on the CPU
  int64_t gpu_layers = -1;   // the last n on the first GPU, where there is one; -1: not said
  SplitMode split_mode = SplitMode::kLayer;
  std::vector<std::string> override_tensors;  // "REGEX=DEVICE,...": matrices that go elsewhere
  // For Embed alone: no output matrix is placed, and the texts share a cache of one full context,
  // or of one block for each of max_sequences where that is more.
  bool embeddings = false;
  bool use_mmap = true;
  bool lock_memory = false;
  bool pack = true;               // weights in the devices' own layouts, where they have any
  bool pack_cache = false;        // and kept in a file between runs,
  std::string pack_cache_folder;  // in this folder; "": beside the model
  RegistryOptions plugins;
  // A device that takes longer with a pass counts as lost, unless it is the CPU by itself.
  std::chrono::milliseconds stage_limit = std::chrono::minutes(5);
  // What is to go wrong on purpose, as docs/faults.md writes it. TRINE_FAULT overrides it, where
  // `plugins` may look at the environment.
  std::string faults;
  LoadProgress progress;  // on the calling thread
  LogSink log;            // warnings, and what plugins say; from any thread

  // Not more than the model's own context, unless asked for.
  static constexpr int64_t kDefaultContext = -1;
  static constexpr int64_t kDefaultContextLimit = 4096;
  // max_sequences for embeddings, where nothing else is asked for: short texts fill a pass.
  static constexpr int64_t kDefaultTexts = 32;
};

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
  absl::Status OpenFile(const EngineOptions& options);
  absl::StatusOr<ModelConfig> ReadConfig() const;
  absl::StatusOr<std::shared_ptr<Model>> Recover(const absl::Status& failure);

  std::shared_ptr<const gguf::File> file_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<DeviceSet> devices_;
  ModelConfig config_;
  SegmentLimits limits_;
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

// f16, f32, bf16, q8_0 as the ABI's number. INVALID_ARGUMENT lists them.
absl::StatusOr<uint32_t> ParseKvType(const std::string& name);

}  // namespace trine

#endif  // TRINE_RUNTIME_ENGINE_H_
