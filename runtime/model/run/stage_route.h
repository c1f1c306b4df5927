// A route of a stage, and the loading of helped routes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/exec/device_times.h"
#include "dispatch/exec/segment.h"
#include "runtime/model/arch/segment_graph.h"
#include "runtime/model/experts/pass_choices.h"
#include "runtime/model/run/route_plan.h"
#include "runtime/model/run/stage_memory.h"
#include "runtime/model/split/split_stage.h"
#include "runtime/model/weights/packed_weights.h"
#include "runtime/model/weights/weight_store.h"

namespace trine {

// Says which hidden states of a segment are bound to the borders before and after it (StageBorder).
struct BoundEnds {
  bool in = false, out = false;
};

// One way of running a stage: its segment on one device, or pieces of it on several devices. Not
// thread-safe, except Busiest.
class StageRoute {
 public:
  StageRoute(std::string device, const SegmentIo& io, std::unique_ptr<Segment> segment,
             BoundEnds bound = {});
  // The pieces may be added to `split` later.
  explicit StageRoute(std::unique_ptr<SplitStage> split);

  SplitStage* split() const { return split_.get(); }  // null: a segment on one device

  // Lets runs collect all of the experts that tokens choose. `routed`: the layers of a segment on
  // one device whose ids are outputs of its graph. Pieces collect by themselves, in Run.
  void CountExperts(std::vector<RoutedLayer> routed);
  // Adds the experts that `tokens` tokens chose in the last Run of a segment on one device.
  absl::Status AddChoices(int64_t tokens, PassChoices* choices);

  // Writes one input of the next run. Does nothing if the stage has no such input; otherwise adds
  // the bytes that cross to the device to `moved`. REQUIRES: for the hidden state, `data` is the
  // run's slot in the border before the stage.
  absl::Status Write(TensorId SegmentIo::*which, const void* data, uint64_t bytes, uint64_t* moved);
  // Runs the stage. `slot` is the pass slot. Pieces add the experts that tokens choose to
  // `choices`.
  absl::Status Run(const std::vector<int64_t>& params, size_t slot, PassChoices* choices);
  // Reads the `values` floats that the last run produced. Returns the host's view of the output if
  // there is one and `keep` is false; otherwise copies the output into `memory`, which must have
  // room for it. Adds the bytes that were copied to `moved`. REQUIRES: for a hidden state, `keep`
  // is true and `memory` is the run's slot in the border after the stage.
  absl::StatusOr<std::span<const float>> Read(const std::vector<int64_t>& params, size_t values,
                                              bool keep, float* memory, uint64_t* moved);

  // Reads the rows of the hidden state that the logits were computed from. Call it after Read.
  // REQUIRES: the graph gives both (SegmentLimits::hidden_rows).
  absl::Status ReadHidden(const std::vector<int64_t>& params, std::span<float> memory,
                          uint64_t* moved);

  // Reads a tap of the last run. REQUIRES: split() is null.
  absl::Status ReadTensor(TensorId tensor, void* memory, uint64_t bytes) const {
    return segment_->Read(tensor, 0, memory, bytes);
  }

  std::vector<std::string> Devices() const;
  // Adds the time that each device has spent since the last call. `run_ns`: how long the last Run
  // took.
  void TakeTimes(uint64_t run_ns, DeviceTimes* times);
  // Returns whether every op has the contract's bits.
  bool exact() const { return split_ == nullptr ? segment_->exact() : split_->exact(); }
  // Returns the device that a run waits for, as far as is known. Any thread may call it.
  BusyDevice Busiest() const;

 private:
  absl::StatusOr<std::span<const float>> ReadSegment(size_t values, bool keep, float* memory,
                                                     uint64_t* moved);
  // Returns how many bytes of a border cross a bus when the device itself reads or writes `bytes`.
  uint64_t Crossing(uint64_t bytes) const;

  std::string device_;
  SegmentIo io_;
  BoundEnds bound_;
  std::unique_ptr<Segment> segment_;
  std::unique_ptr<SplitStage> split_;
  std::vector<RoutedLayer> routed_;  // empty: nothing is counted, or pieces count
  std::vector<int32_t> ids_;         // of a layer, if the host does not see the device's memory
};

// Records the plans of a stage's helped routes over the weights and caches that the stage has in
// memory already.
class RouteLoader {
 public:
  // All arguments must outlive the loader. `changed`: the weights whose values devices need in a
  // corrected copy, because the file has values outside the contract's range. `count_experts`:
  // whether passes on these routes collect the experts that tokens choose.
  RouteLoader(const PackedWeights& packed, const std::set<const gguf::TensorInfo*>& changed,
              WeightStore* store, StageCaches* caches, bool count_experts = false)
      : packed_(packed),
        changed_(changed),
        store_(*store),
        caches_(*caches),
        count_experts_(count_experts) {}

  // Loads helped route `route` of the plan. `whole` is the stage's graph. Fails if the route would
  // need a second copy of the stage's weights. REQUIRES: whole.graph.Finish() has not been called.
  absl::StatusOr<std::unique_ptr<StageRoute>> Load(const SegmentPlace& home, const RoutePlan& plan,
                                                   size_t route, SegmentGraph whole);
  // Returns the weights and caches that the stage's own device has for a graph that runs on it.
  absl::StatusOr<std::vector<SlotMemory>> BindAtHome(const std::shared_ptr<Device>& home,
                                                     SegmentGraph* graph);
  // Return the scratch and IO memory of all routes loaded so far, and the helper's part of it. The
  // helper's part includes the memory through which a plugin streams weights.
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  uint64_t helper_bytes() const { return helper_bytes_; }

 private:
  absl::StatusOr<std::unique_ptr<StageRoute>> LoadTwin(const RoutePlan& plan, SegmentGraph whole);
  // Loads a route of which home runs all ops and fetches some weights.
  absl::StatusOr<std::unique_ptr<StageRoute>> LoadFetched(const SegmentPlace& home,
                                                          const RoutePlan& plan,
                                                          SegmentGraph whole);
  // Loads a route of which the helper runs a part of the ops.
  absl::StatusOr<std::unique_ptr<StageRoute>> LoadProducts(const SegmentPlace& home,
                                                           const RoutePlan& plan, size_t route,
                                                           const SegmentGraph& whole);
  // Sets each weight of the graph to the layout in which the device has it.
  void FindLayouts(const Device& device, SegmentGraph* graph) const;
  // Chooses how a device may get weights that it has not packed.
  enum class Uses { kShared, kStreamed, kOwn };
  // `fetched`: weights that are streamed whatever `uses` says.
  absl::StatusOr<std::vector<SlotMemory>> Bind(
      const std::shared_ptr<Device>& device, Uses uses, SegmentGraph* graph,
      const std::set<const gguf::TensorInfo*>& fetched = {});

  const PackedWeights& packed_;
  const std::set<const gguf::TensorInfo*>& changed_;
  WeightStore& store_;
  StageCaches& caches_;
  const bool count_experts_;
  uint64_t scratch_bytes_ = 0, helper_bytes_ = 0;
};

}  // namespace trine
