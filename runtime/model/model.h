// A model placed on devices: its segments in order, each a stage that passes go through.
#ifndef TRINE_RUNTIME_MODEL_MODEL_H_
#define TRINE_RUNTIME_MODEL_MODEL_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/segment.h"
#include "dispatch/size_rule.h"
#include "plugins/handles.h"
#include "plugins/host_services.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/detour_plan.h"
#include "runtime/model/graph_taps.h"
#include "runtime/model/kv_blocks.h"
#include "runtime/model/kv_moves.h"
#include "runtime/model/load_progress.h"
#include "runtime/model/memory_check.h"
#include "runtime/model/model_config.h"
#include "runtime/model/packed_weights.h"
#include "runtime/model/rope_table.h"
#include "runtime/model/segment_graph.h"
#include "runtime/model/stage_border.h"
#include "runtime/model/stage_caches.h"
#include "runtime/model/stage_way.h"
#include "runtime/model/tensor_places.h"
#include "runtime/model/weight_pass.h"
#include "runtime/model/weight_store.h"

namespace trine {

class Model;
struct Pass;

// Told of each stage that a pass has been through, of a model with taps: on the stage's thread,
// before its next pass, so that what the taps hold can be read. An error is the pass's.
using StageObserver =
    std::function<absl::Status(const Model& model, size_t stage, const Pass& pass)>;

struct LoadOptions {
  bool pack = true;        // weights in the devices' own layouts, where they have any
  std::string pack_cache;  // the file that keeps them between runs; "": none
  LoadProgress progress;   // on the calling thread
  // False: whoever asked for the model does not wait for it any more. Likewise, and more often.
  std::function<bool()> wanted;
  TensorPlaces tensors;             // what is not where its layers are
  DispatchOptions dispatch;         // what may leave its layers for a while; with taps nothing does
  TapLevel taps = TapLevel::kNone;  // what can be read of passes (docs/branching.md)
  StageObserver observer;           // who reads it; null: nobody is told
};

// Another way that some passes take through a stage.
struct DetourInfo {
  size_t stage = 0;
  std::string helper;  // the device
  DetourKind kind = DetourKind::kStreamed;
  int64_t first_tokens = 0;  // of a pass that takes it
};

// How a device came by its weights.
struct DeviceWeights {
  std::string device_name;
  WeightBytes plain;
  uint64_t packed_bytes = 0;  // copies in the device's own layouts
};

// Tokens of one sequence that follow what its cache already holds.
struct BatchPart {
  std::span<const int32_t> tokens;
  int64_t first_position = 0;
  const BlockTable* blocks = nullptr;  // with room for all positions
};

struct Batch {
  std::vector<BatchPart> parts;
  std::vector<int32_t> output_rows;  // tokens of the batch, counted over all parts
  bool hidden = false;               // with limits().hidden_rows: these of the rows too
  KvMoves moves;                     // of its parts' blocks

  void Clear() {
    parts.clear();
    output_rows.clear();
    hidden = false;
    moves.Clear();
  }
};

// A batch on its way through the stages: what they read, and what each leaves for the next. Holds
// nothing of the batch's sequences. May be used for one batch after another, which allocates less.
struct Pass {
  std::vector<int32_t> tokens, kv_slots, block_table, q_offsets, kv_lengths, output_rows;
  std::vector<float> rope_rows, rope_windowed_rows;
  std::vector<int64_t> params;
  size_t place = 0;           // of its hidden state, in each of the borders between stages
  std::vector<float> output;  // unless it is where the host sees the last stage's memory
  std::span<const float> rows;
  bool wants_hidden = false;
  std::vector<float> hidden;  // n_embd values per output row, where they are wanted
  KvMoves moves;
};

// One stage's part of a pass, as it was.
struct StageRun {
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point kNever{};
  Clock::time_point begin, end;
  Clock::time_point written = kNever, ran = kNever;  // if it came to that
  uint64_t bytes_in = 0, bytes_out = 0;              // copied to the device and from it
  uint64_t moved_blocks = 0;                         // of the KV caches
  bool detour = false;                               // it took another way than most
  bool ok = false;
};

class Model {
 public:
  // Checks the weights, packs and places them, and records a plan per segment. `host` is the one
  // the devices were opened with.
  static absl::StatusOr<std::unique_ptr<Model>> Load(std::shared_ptr<const gguf::File> file,
                                                     const ModelConfig& config,
                                                     const SegmentLimits& limits,
                                                     std::vector<SegmentPlace> places,
                                                     const HostServices& host,
                                                     const LoadOptions& options);

  // On no device at all, and not to be run: what stands for a model that has lost its devices.
  static std::shared_ptr<Model> Nowhere(const ModelConfig& config, const SegmentLimits& limits);

  // Expires when the model has been destroyed, not when that begins.
  std::weak_ptr<void> life() const { return life_; }

  const ModelConfig& config() const { return config_; }
  const SegmentLimits& limits() const { return limits_; }
  const std::vector<SegmentPlace>& places() const { return places_; }
  std::vector<DetourInfo> detours() const;  // at most one for each stage
  // The devices that a stage runs on, its own first.
  std::vector<std::string> StageDevices(size_t stage) const;
  std::set<std::string> Devices() const;  // of all stages
  // The one of them that a pass in the stage is waiting for, as far as can be told. From any
  // thread.
  BusyDevice Busiest(size_t stage) const;
  uint64_t kv_bytes() const;
  // Of one block in the caches of all layers.
  uint64_t kv_block_bytes() const;
  // Of what positions are turned by: one model may have several, as its options say.
  uint64_t RopeHash() const;
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  uint64_t packed_bytes() const { return packed_.bytes(); }
  uint64_t arena_bytes() const { return store_->arena_bytes(); }  // that devices share
  // How each device that has a segment came by its weights, in the segments' order.
  std::vector<DeviceWeights> weights() const;
  // Keeps the weights from being swapped out, wherever the CPU sees them.
  absl::Status LockWeights() const;
  // Time spent so far in runs of plans, of all stages; the rest of a pass is the host's own.
  uint64_t run_ns() const { return run_ns_; }
  size_t stage_count() const { return stages_.size(); }
  // Passes that may be under way, each with a place of its own: one more than there are stages, so
  // that none of these waits for the host.
  size_t pass_places() const { return stages_.size() > 1 ? stages_.size() + 1 : 1; }
  // Values of an output row: logits, or with limits().embeddings the hidden state after the final
  // norm.
  int64_t output_width() const { return limits_.embeddings ? config_.n_embd : config_.n_vocab; }

  // Room for a token of every sequence, so that no pass of such is what has to allocate. `keep`: as
  // in Run, for the rows too.
  void ReserveForDecode(bool keep, Pass* pass) const;
  // Within the limits: at least one token and at least one output row, at most as many as the
  // limits say. `place`: below pass_places(), and no other pass under way has it.
  void Prepare(const Batch& batch, size_t place, Pass* pass) const;
  // One stage of a pass that has been through those before it. A stage runs one pass at a time, in
  // the order of their batches; different stages may run at the same time. After the last one
  // pass->rows holds output_width() values per output row: with `keep` its own copy, else perhaps
  // where the stage writes those of its next pass. `run` is filled in any case.
  absl::Status Run(size_t stage, Pass* pass, bool keep, StageRun* run);

  // ---- What passes leave behind, and other graphs over the same weights (runtime/graph). On the
  // thread that runs the stage.

  TapLevel taps() const { return taps_; }
  const std::vector<Tap>& StageTaps(size_t stage) const { return stages_[stage].taps; }
  // Of the stage's last pass, into memory that has room for TapBytes.
  absl::Status ReadTap(size_t stage, size_t tap, const Pass& pass, void* memory) const;
  uint64_t TapBytes(size_t stage, size_t tap, const Pass& pass) const;
  // Rows of one of the stage's caches, by its number there: for each slot, each head.
  absl::Status ReadCache(size_t stage, size_t number, const CacheRows& rows,
                         std::span<const int32_t> slots, std::byte* memory) const;
  absl::Status WriteCache(size_t stage, size_t number, const CacheRows& rows,
                          std::span<const int32_t> slots, const std::byte* memory) const;
  // All of the model as one graph, not finished, with the ops that the stages have.
  absl::StatusOr<SegmentGraph> WholeGraph() const;
  // The memory that a graph on a stage's device needs of what the stage has: weights where they
  // lie, in the layouts they are in, and caches by their numbers in the stage. For whole layers.
  absl::StatusOr<std::vector<SlotMemory>> Bind(size_t stage, SegmentGraph* graph);

 private:
  struct Stage {
    StageCaches caches;  // before what stands on them
    std::unique_ptr<StageWay> home;
    std::vector<std::unique_ptr<StageWay>> detours;
    std::optional<DetourPlan> plan;  // of the detours
    RouteSwitch routes;              // 0: home
    std::atomic<const StageWay*> current = nullptr;
    std::vector<Tap> taps;
    std::vector<trine_tensor> tap_tensors;  // what the taps name
    std::map<TensorId, size_t> tap_caches;  // numbers of the caches among them
  };

  using OutOfRange = std::set<const gguf::TensorInfo*>;  // values the contract does not know

  Model() = default;
  // One for each segment, or for each of its pieces; with loads_ and stages_.
  absl::Status BuildGraphs(const TensorPlaces& tensors, std::vector<SegmentGraph>* graphs);
  absl::Status AddTaps(size_t stage, const SegmentOwners& owners, SegmentGraph* whole);
  void Cut(size_t stage, const SegmentOwners& owners, const SegmentGraph& whole,
           std::vector<SegmentGraph>* graphs);
  // Of the scratch that pieces share.
  absl::Status AllocateSplits(const std::vector<SegmentGraph>& graphs);
  // What packing takes from the choice of layouts to a written cache.
  absl::Status PlaceWeights(const HostServices& host, const LoadOptions& options, LoadMeter* meter,
                            std::vector<SegmentGraph>* graphs, OutOfRange* out_of_range);
  absl::Status ImportWeights(const HostServices& host, const std::vector<SegmentGraph>& graphs,
                             const OutOfRange& out_of_range, LoadMeter* meter);
  absl::Status LoadGraph(const SegmentPlace& load, size_t stage, SegmentGraph graph,
                         const OutOfRange& out_of_range);
  uint64_t BorderBytes() const;
  absl::Status MakeBorders();
  // Binds a segment's ends to the borders beside it, where its device imports them.
  absl::StatusOr<BoundEnds> BindEnds(const std::shared_ptr<Device>& device, size_t stage,
                                     SegmentGraph* graph, std::vector<SlotMemory>* memory);
  // With the layouts that home has, and before weights are imported.
  absl::Status PlanDetours(const DispatchOptions& options, const std::vector<SegmentGraph>& graphs,
                           const OutOfRange& out_of_range);
  // What can't be loaded is done without, unless a device is lost.
  absl::Status LoadDetours(const HostServices& host, const OutOfRange& out_of_range);
  absl::Status LoadDetour(Stage* stage, size_t index, const OutOfRange& out_of_range);
  uint64_t BytesOn(const Device& device) const;
  StageWay* ChooseWay(size_t stage, const Pass& pass, StageRun* run);
  absl::Status WriteInputs(size_t stage, const Pass& pass, StageWay* way, uint64_t* bytes) const;
  absl::Status RunParts(size_t stage, Pass* pass, bool keep, StageRun* run);
  uint64_t KvOffset(size_t stage) const;
  absl::Status MoveBlocks(size_t stage, const KvMoves& moves, StageRun* run) const;
  absl::Status SaveBlocks(size_t stage, const KvMoves& moves, StageRun* run) const;

  std::shared_ptr<void> life_ = std::make_shared<char>();  // goes last
  std::shared_ptr<const gguf::File> file_;
  ModelConfig config_;
  SegmentLimits limits_;
  std::vector<SegmentPlace> places_;         // of the stages
  std::vector<SegmentPlace> loads_;          // the same, with pieces in the place of what is cut
  std::vector<size_t> load_stages_;          // whose each of them is
  PackedWeights packed_;                     // before the stages, which stand on it
  std::unique_ptr<WeightStore> store_;       // likewise
  std::set<const gguf::TensorInfo*> plain_;  // read as the file has them
  std::unique_ptr<RopeTable> rope_;
  std::unique_ptr<RopeTable> rope_windowed_;           // null where all layers share one
  std::vector<std::unique_ptr<StageBorder>> borders_;  // behind each stage but the last
  std::deque<Stage> stages_;
  std::function<void(const std::string&)> dispatch_log_;
  std::map<std::string, uint64_t> limits_of_helpers_;
  std::map<const Device*, uint64_t> device_bytes_;  // scratch and IO
  bool asked_tokens_ = false;                       // somebody said which passes take a detour
  TapLevel taps_ = TapLevel::kNone;
  StageObserver observer_;
  OutOfRange out_of_range_;
  uint64_t scratch_bytes_ = 0;
  std::atomic<uint64_t> run_ns_ = 0;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_MODEL_H_
