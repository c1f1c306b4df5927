// A model placed on devices. Each of its segments is a stage, and passes go through the stages in
// order. Keeps alive the file, the devices and all memory that it uses. The caller provides the
// threads: one at a time for each stage.
#pragma once

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
#include "dispatch/cost/size_rule.h"
#include "dispatch/exec/device_times.h"
#include "dispatch/exec/segment.h"
#include "plugins/handles.h"
#include "plugins/host_services.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/arch/graph_taps.h"
#include "runtime/model/arch/model_config.h"
#include "runtime/model/arch/rope_table.h"
#include "runtime/model/arch/segment_graph.h"
#include "runtime/model/experts/divided_experts.h"
#include "runtime/model/experts/expert_hits.h"
#include "runtime/model/experts/pass_choices.h"
#include "runtime/model/run/kv_blocks.h"
#include "runtime/model/run/route_plan.h"
#include "runtime/model/run/stage_memory.h"
#include "runtime/model/run/stage_route.h"
#include "runtime/model/split/tensor_places.h"
#include "runtime/model/weights/load_progress.h"
#include "runtime/model/weights/memory_check.h"
#include "runtime/model/weights/packed_weights.h"
#include "runtime/model/weights/weight_pass.h"
#include "runtime/model/weights/weight_store.h"

namespace trine {

class Model;
struct Pass;

// Called in a model with taps after a stage has run a pass. Called on the stage's thread before the
// stage's next pass, so that ReadTap reads the values of this pass. An error fails the pass.
using StageObserver =
    std::function<absl::Status(const Model& model, size_t stage, const Pass& pass)>;

struct LoadOptions {
  bool pack = true;        // store weights in the devices' own layouts, if there are any
  std::string pack_cache;  // the file that keeps packed weights between runs; "": none
  LoadProgress progress;   // called on the loading thread
  // Returns false if the caller no longer wants the model; then Load stops. Called on the loading
  // thread, more often than `progress`.
  std::function<bool()> wanted;
  TensorPlaces tensors;      // weights that are not on the device of their layers
  DispatchOptions dispatch;  // which passes may take helped routes; with taps none do
  // Counts the choices of experts that the host sees, or with SegmentLimits::count_experts all of
  // them. null: the model makes it.
  std::shared_ptr<ExpertHits> hits;
  ExpertMoves expert_moves;  // of divided layers
  // A home of divided layers that can read the file's pages reads all experts there. false: it has
  // copies of some in slots.
  bool experts_in_place = true;
  TapLevel taps = TapLevel::kNone;  // which values of passes can be read (docs/branching.md)
  StageObserver observer;           // null: none
};

// The helped routes of a stage.
struct RouteInfo {
  size_t stage = 0;
  std::string helper;  // the helper's name
  RouteKind kind = RouteKind::kStreamed;
  int64_t first_tokens = 0;  // a pass with fewer tokens takes none of them
  bool small = false;        // some passes take it that have no more tokens than sequences may be
  bool large = false;        // some larger passes take it: those that read prompts
};

// The bytes of weights that a device has, and how it got them.
struct DeviceWeights {
  std::string device_name;
  WeightBytes plain;
  uint64_t packed_bytes = 0;  // copies in the device's own layouts
};

// Tokens of one sequence that follow those in its KV cache.
struct BatchPart {
  std::span<const int32_t> tokens;
  int64_t first_position = 0;
  const BlockTable* blocks = nullptr;  // with room for all positions
  int64_t read_before = 0;             // how many of the first tokens an earlier pass has read
};

// The tokens of several sequences that go through the model together.
struct Batch {
  std::vector<BatchPart> parts;
  std::vector<int32_t> output_rows;  // indices of tokens, counted over all parts
  bool hidden = false;  // also give the hidden state of output rows; needs limits().hidden_rows
  KvMoves moves;        // the moves of the parts' blocks

  // Begins the choices of a pass with these tokens.
  void BeginChoices(PassChoices* choices) const {
    choices->Clear();
    for (const BatchPart& part : parts) {
      choices->AddTokens(static_cast<int64_t>(part.tokens.size()), part.read_before);
    }
  }
  void Clear() {
    parts.clear();
    output_rows.clear();
    hidden = false;
    moves.Clear();
  }
};

// A batch on its way through the stages, with the inputs and the output of the stages. Keeps no
// reference to the batch or its sequences. Reuse a pass for later batches to save allocations.
struct Pass {
  std::vector<int32_t> tokens, kv_slots, block_table, q_offsets, kv_lengths, output_rows;
  std::vector<float> rope_rows, rope_windowed_rows;
  std::vector<int64_t> params;
  size_t slot = 0;              // the pass slot: the number of its memory in each border
  std::vector<float> output;    // the memory of `rows`, unless that is the last stage's own
  std::span<const float> rows;  // the output rows, after the last stage
  bool wants_hidden = false;
  std::vector<float> hidden;  // n_embd values per output row, if wants_hidden
  KvMoves moves;
  PassChoices choices;  // of experts, so far
};

// An account of one stage's run of a pass: times, bytes and the route.
struct StageRun {
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point kNever{};
  Clock::time_point begin, end;
  Clock::time_point written = kNever, ran = kNever;  // kNever: it failed before
  uint64_t bytes_in = 0, bytes_out = 0;              // copied to the device and from it
  uint64_t moved_blocks = 0;                         // KV blocks that were loaded, copied or saved
  bool detour = false;                               // it took a helped route
  DeviceTimes devices;                               // if several devices may run the stage
  bool ok = false;
};

class Model {
 public:
  // Checks the weights, packs and places them, and records a plan for each segment. REQUIRES: the
  // devices were opened with `host`.
  static absl::StatusOr<std::unique_ptr<Model>> Load(std::shared_ptr<const gguf::File> file,
                                                     const ModelConfig& config,
                                                     const SegmentLimits& limits,
                                                     std::vector<SegmentPlace> places,
                                                     const HostServices& host,
                                                     const LoadOptions& options);

  // Returns a model without devices, which stands for a model that has lost its devices. It can't
  // run.
  static std::shared_ptr<Model> Nowhere(const ModelConfig& config, const SegmentLimits& limits);

  // Expires when the destruction of the model ends, not when it begins.
  std::weak_ptr<void> life() const { return life_; }

  const gguf::File* file() const { return file_.get(); }  // null: it has lost its devices
  const ModelConfig& config() const { return config_; }
  const SegmentLimits& limits() const { return limits_; }
  const std::vector<SegmentPlace>& places() const { return places_; }
  // Returns the helped routes, with at most one entry for each stage.
  std::vector<RouteInfo> routes() const;
  // Returns whether a stage has the contract's bits on each of its routes.
  bool IsExact(size_t stage) const;
  // Returns the devices that a stage runs on, its home first.
  std::vector<std::string> StageDevices(size_t stage) const;
  std::set<std::string> Devices() const;  // the devices of all stages
  // Returns the weights that were placed by name, with their devices.
  const std::map<std::string, std::string>& moved_weights() const { return moved_weights_; }
  // Returns the divided experts of a stage; null: it has none. Only their counters may be read by
  // other threads than the stage's.
  const DividedExperts* experts(size_t stage) const { return stages_[stage].experts.get(); }
  // Returns the device that a pass in the stage waits for, as far as is known. Any thread may call
  // it.
  BusyDevice Busiest(size_t stage) const;
  // Returns the memory that a device uses: its own weights, the caches of its stages, scratch and
  // IO.
  uint64_t BytesOn(const std::string& device) const;
  uint64_t kv_bytes() const;
  // Returns the bytes of one block in the caches of all layers.
  uint64_t kv_block_bytes() const;
  // Returns a hash of the rope tables. They depend on the file and on options.
  uint64_t RopeHash() const;
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  uint64_t packed_bytes() const { return packed_.bytes(); }
  uint64_t arena_bytes() const { return store_->arena_bytes(); }  // shared by devices
  // Returns an entry for each device that has a segment, in the segments' order.
  std::vector<DeviceWeights> weights() const;
  // Keeps the weights that the CPU sees from being swapped out.
  absl::Status LockWeights() const;
  // Returns the time spent so far in runs of plans, over all stages. The rest of a pass's time is
  // the host's own work.
  uint64_t run_ns() const { return run_ns_; }
  size_t stage_count() const { return stages_.size(); }
  // Returns how many passes may be in flight: 1 for a single stage, otherwise one more than there
  // are stages, so that no stage waits for the host.
  size_t pass_slots() const { return stages_.size() > 1 ? stages_.size() + 1 : 1; }
  // Returns the number of values in an output row: logits, or with limits().embeddings the hidden
  // state after the final norm.
  int64_t output_width() const { return limits_.embeddings ? config_.n_embd : config_.n_vocab; }

  // Reserves memory for one token of every sequence, so that passes of that size do not allocate.
  // `keep`: also reserves memory for the output rows that Run is to keep.
  void ReserveForDecode(bool keep, Pass* pass) const;
  // Fills `pass` from `batch`. REQUIRES: at least one token and one output row, at most as many as
  // limits() allows; `slot` is below pass_slots() and no other pass in flight has it.
  void Prepare(const Batch& batch, size_t slot, Pass* pass) const;
  // Runs one stage of a pass that has been through all earlier stages. A stage runs one pass at a
  // time, in the order of their batches; different stages may run at the same time. After the last
  // stage, pass->rows holds output_width() values for each output row. With `keep` the pass owns
  // these values; without it the stage's next pass may overwrite them. Fills `run` even on failure.
  absl::Status Run(size_t stage, Pass* pass, bool keep, StageRun* run);
  // Counts the experts that the tokens of a pass chose. Call it once a pass has been through all
  // stages. Any thread may call it.
  void CountChoices(Pass* pass) const { pass->choices.CountIn(hits_.get()); }

  // ---- Functions that read values of passes, and that let other graphs use the same weights
  // (runtime/graph). Only the thread that runs the stage may call these.

  TapLevel taps() const { return taps_; }
  const std::vector<Tap>& StageTaps(size_t stage) const { return stages_[stage].taps; }
  // Reads a tap of the stage's last pass into `memory`, which must have room for TapBytes.
  absl::Status ReadTap(size_t stage, size_t tap, const Pass& pass, void* memory) const;
  uint64_t TapBytes(size_t stage, size_t tap, const Pass& pass) const;
  // Read or write rows of the stage's cache `number`: the rows of all heads for each KV slot.
  absl::Status ReadCache(size_t stage, size_t number, const CacheRows& rows,
                         std::span<const int32_t> slots, std::byte* memory) const;
  absl::Status WriteCache(size_t stage, size_t number, const CacheRows& rows,
                          std::span<const int32_t> slots, const std::byte* memory) const;
  // Returns the whole model as one graph, with the same ops as the stages. Finish() has not been
  // called on it.
  absl::StatusOr<SegmentGraph> WholeGraph() const;
  // Returns the memory of the stage's weights and caches for a graph of whole layers that is to run
  // on the stage's device. Sets the graph's layouts to the layouts of the weights. KvUse::number of
  // the graph is the number of a cache in the stage.
  absl::StatusOr<std::vector<SlotMemory>> Bind(size_t stage, SegmentGraph* graph);

 private:
  struct Stage {
    StageCaches caches;                       // declared before the routes, which use them
    std::unique_ptr<DividedExperts> experts;  // null: none; declared before the routes
    std::unique_ptr<StageRoute> home;
    std::vector<std::unique_ptr<StageRoute>> helped;
    std::optional<RoutePlan> plan;  // the plan of the helped routes; nullopt: there are none
    RouteSwitch route_switch;       // chooses the route of a pass; 0: home
    std::atomic<const StageRoute*> current = nullptr;
    std::vector<Tap> taps;
    std::vector<trine_tensor> tap_tensors;  // by tap
    std::map<TensorId, size_t> tap_caches;  // [tensor of a tap]: the number of its cache
  };

  // The weights that have values outside the contract's range.
  using OutOfRange = std::set<const gguf::TensorInfo*>;

  Model() = default;
  // Builds a graph for each segment or, if the segment is cut, for each of its pieces. Fills loads_
  // and stages_.
  absl::Status BuildGraphs(const LoadOptions& options, std::vector<SegmentGraph>* graphs);
  absl::StatusOr<SegmentGraph> BuildWhole(size_t stage, const LoadOptions& options);
  absl::Status AddTaps(size_t stage, const SegmentOwners& owners, SegmentGraph* whole);
  void Cut(size_t stage, const SegmentOwners& owners, const SegmentGraph& whole,
           std::vector<SegmentGraph>* graphs);
  // Allocates the scratch that pieces share.
  absl::Status AllocateSplits(const std::vector<SegmentGraph>& graphs);
  // Chooses layouts, checks the memory, packs or loads the pack cache, checks values, writes the
  // cache.
  absl::Status PlaceWeights(const HostServices& host, const LoadOptions& options, LoadMeter* meter,
                            std::vector<SegmentGraph>* graphs, OutOfRange* out_of_range);
  absl::Status ImportWeights(const HostServices& host, const std::vector<SegmentGraph>& graphs,
                             const OutOfRange& out_of_range, LoadMeter* meter);
  absl::Status LoadGraph(const SegmentPlace& load, size_t stage, SegmentGraph graph,
                         const OutOfRange& out_of_range);
  // Returns where a device reads a weight that it has not packed.
  absl::StatusOr<WeightPlace> PlacePlain(const SegmentPlace& load, size_t stage,
                                         const WeightUse& use, const OutOfRange& out_of_range);
  uint64_t BorderBytes() const;
  absl::Status MakeBorders();
  // Binds a segment's hidden states to the borders before and after it, if its device can import
  // them.
  absl::StatusOr<BoundEnds> BindEnds(const std::shared_ptr<Device>& device, size_t stage,
                                     SegmentGraph* graph, std::vector<SlotMemory>* memory);
  // Plans the helped routes. Call it after the layouts were chosen and before ImportWeights.
  absl::Status PlanRoutes(const DispatchOptions& options, const TensorPlaces& tensors,
                          const std::vector<SegmentGraph>& graphs, const OutOfRange& out_of_range);
  // Returns why a stage can't read divided experts in place, now that weights have been imported.
  // "": it can, or is not to.
  std::string WhyNotInPlace(const std::vector<SegmentGraph>& graphs,
                            const OutOfRange& out_of_range) const;
  bool HasExpertsInPlace() const;
  // Loads the helped routes. A route that fails to load is left out, unless a device is lost.
  absl::Status LoadRoutes(const HostServices& host, const OutOfRange& out_of_range);
  absl::Status LoadRoute(Stage* stage, size_t index, const OutOfRange& out_of_range);
  uint64_t BytesOn(const Device& device) const;
  StageRoute* ChooseRoute(size_t stage, const Pass& pass, StageRun* run);
  absl::Status WriteInputs(size_t stage, const Pass& pass, StageRoute* route,
                           uint64_t* bytes) const;
  absl::Status RunParts(size_t stage, Pass* pass, bool keep, StageRun* run);
  uint64_t KvOffset(size_t stage) const;
  absl::Status MoveBlocks(size_t stage, const KvMoves& moves, StageRun* run) const;
  absl::Status SaveBlocks(size_t stage, const KvMoves& moves, StageRun* run) const;

  std::shared_ptr<void> life_ = std::make_shared<char>();  // destroyed last
  std::shared_ptr<const gguf::File> file_;
  ModelConfig config_;
  SegmentLimits limits_;
  std::vector<SegmentPlace> places_;                  // by stage
  std::map<std::string, std::string> moved_weights_;  // [weight]: its device's name
  std::vector<SegmentPlace> loads_;     // places_, but with the pieces of a segment that is cut
  std::vector<size_t> load_stages_;     // the stage of each load
  PackedWeights packed_;                // declared before the stages, which use it
  std::unique_ptr<WeightStore> store_;  // declared before the stages, which use it
  std::set<const gguf::TensorInfo*> plain_;  // weights that are read unpacked
  std::unique_ptr<RopeTable> rope_;
  std::unique_ptr<RopeTable> rope_windowed_;           // null: all layers share rope_
  std::vector<std::unique_ptr<StageBorder>> borders_;  // after each stage but the last
  std::deque<Stage> stages_;
  std::function<void(const std::string&)> dispatch_log_;
  std::map<std::string, uint64_t> limits_of_helpers_;
  std::map<const Device*, uint64_t> device_bytes_;  // scratch and IO, also of helped routes
  bool asked_tokens_ = false;                       // the user said which passes take helped routes
  TapLevel taps_ = TapLevel::kNone;
  StageObserver observer_;
  OutOfRange out_of_range_;
  std::shared_ptr<ExpertHits> hits_;
  uint64_t scratch_bytes_ = 0;
  std::atomic<uint64_t> run_ns_ = 0;
};

}  // namespace trine
