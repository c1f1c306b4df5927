// Decides which layers of a model go on which device: as the user asked, or as the planner finds
// best. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/cost/device_costs.h"
#include "dispatch/cost/size_rule.h"
#include "dispatch/planner/placement.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/arch/model_config.h"
#include "runtime/model/arch/segment_graph.h"
#include "runtime/model/experts/expert_hits.h"
#include "runtime/placement/device_set.h"
#include "runtime/placement/elsewhere.h"
#include "runtime/placement/layer_ranges.h"
#include "runtime/placement/placement_request.h"
#include "runtime/placement/problem.h"

namespace trine {

// A placement and the problem that it solves.
struct PlacementReport {
  PlacementProblem problem;
  PlanOptions options;
  Placement placement;
  bool searched = false;  // true: the planner chose it; false: the user asked for it
  // The segments of the model as it runs. Several segments of the placement, with different parts
  // elsewhere, may be one of them.
  std::vector<LayerRange> ranges;
  std::vector<MovedWeights> moved;  // the weights that are on another device than their layers
  bool rows = false;                // the devices share rows of every matrix
};

// The devices that may help with large passes, and their known costs.
struct DispatchChoice {
  SizeRule rule;
  std::map<std::string, KnownCosts> costs;  // by tier name
  std::vector<std::string> helpers;         // tier names
  std::map<std::string, uint64_t> limits;   // by tier name: the most bytes of memory to use
  bool log = false;                         // logs each decision
};

// The options of a Placer that are not part of the user's request.
struct PlacerOptions {
  bool pack = true;             // weights are packed into the devices' own layouts
  bool use_environment = true;  // looks at TRINE_DISPATCH and the default calibration file
  LogSink log;                  // null: warnings are dropped
  // true: layers are not cut, so the planner leaves no parts of them to other devices.
  bool whole_layers = false;
  // How often experts were chosen, which says what slots are expected to get. null: not known.
  std::shared_ptr<const ExpertHits> hits;
};

// The prediction for a request.
struct PredictedRequest {
  int64_t request_ns = 0;
  bool fetches = false;  // a device fetches weights to read the prompt
};

class Placer {
 public:
  // `devices` must outlive the placer.
  Placer(PlacementRequest request, PlacerOptions options, std::shared_ptr<const gguf::File> file,
         const ModelConfig& config, const SegmentLimits& limits, DeviceSet* devices);

  // Returns where the parts of the model go.
  absl::StatusOr<ModelPlaces> Choose();
  // Returns whether the planner decides where layers go; false: the user has decided.
  bool searches() const { return request_.planned(); }
  // Returns whether the planner decides where parts of layers go.
  bool places_parts() const {
    return searches() && request_.overrides.empty() && !request_.places_experts();
  }
  // Returns the places as the planner chooses them without the devices in `lost`.
  absl::StatusOr<ModelPlaces> ChooseWithout(const std::vector<std::string>& lost);
  // Returns the devices that may help a model in these places with large passes.
  DispatchChoice ChooseDispatch(const ModelPlaces& places,
                                const std::vector<std::string>& lost) const;
  // Returns the tier names of devices that the user named.
  std::vector<std::string> Named() const;
  // Returns the devices that have failed since the last TakeFailures while places were chosen. No
  // chosen place is on one of them.
  std::vector<DeviceFailure> TakeFailures() { return std::exchange(failed_, {}); }
  // Returns whether the machine has a device that may fetch weights. Asks no device.
  bool MayFetch() const;
  // Returns the predicted time of a request in the places that Choose would return.
  absl::StatusOr<PredictedRequest> Predict(const NominalRequest& request);
  // Returns what Choose would return, with predictions and reasons.
  absl::StatusOr<PlacementReport> Explain();

 private:
  absl::StatusOr<std::vector<CandidateDevice>> Candidates(const std::vector<std::string>& lost,
                                                          bool warn) const;
  absl::StatusOr<ProblemOptions> Describe(const std::vector<std::string>& lost) const;
  absl::StatusOr<PlacementReport> Search(const std::vector<std::string>& lost, bool explain);
  // Fills in everything but the reasons.
  absl::StatusOr<PlacementReport> Report(bool explain);
  // Describes the planner's problem. If a device fails while it is described, begins again without
  // it, because the times of other devices may have counted on its help.
  absl::StatusOr<PlacementProblem> ProblemOfThoseThatAnswer(const std::vector<std::string>& lost,
                                                            bool cpu_from_file);
  absl::StatusOr<PlacementProblem> ProblemOf(const ModelPlaces& places);
  std::string CalibrationPath() const;
  // Returns the fewest tokens of a pass that may leave the device of its layers.
  int64_t LeastHelped() const;
  // Returns the error for a model that has no device: which devices there are, and what is wrong
  // with them.
  absl::Status NoDevice() const;
  absl::StatusOr<PlacementProblem> Problem(const ProblemOptions& options);
  absl::StatusOr<ModelPlaces> AskedRanges() const;
  // Returns the weights that the user placed, without those on devices that are lost or failed.
  absl::StatusOr<std::map<std::string, std::string>> FixedTensors(
      const std::vector<std::string>& lost) const;
  // Returns slots with the part of the choices that they are expected to get.
  std::map<int64_t, PlannedSlots> Expected(const std::map<int64_t, int64_t>& slots) const;
  absl::StatusOr<ModelPlaces> Plan(const std::vector<std::string>& lost);
  // Returns the modes that the planner may choose for the candidates.
  std::vector<ModeOption> Modes(const std::vector<CandidateDevice>& candidates) const;
  // Returns the places of a placement of the problem.
  ModelPlaces PlacesOf(const PlanProblem& problem, const Placement& placement) const;
  bool HasFailed(const std::string& device) const;
  absl::StatusOr<PlacementReport> Evaluate(const ModelPlaces& places);
  void Warn(const std::string& message) const;

  const PlacementRequest request_;
  const PlacerOptions options_;
  const std::shared_ptr<const gguf::File> file_;
  const ModelConfig config_;
  const SegmentLimits limits_;
  DeviceSet* const devices_;
  NominalRequest nominal_;  // the request whose time is predicted
  std::vector<DeviceFailure> failed_;
};

// What a device has of layers that are on other devices: "CPU(experts of 32)".
struct PartsText {
  std::string device;  // its tier name
  std::string what;    // "experts of 32"
};

// Returns a text such as "CPU(4L) + iGPU(12L, prompts by cpu) + dGPU(16L)". `notes`: what is said
// of each range; may be empty. `parts`: the parts of layers that devices have by themselves.
std::string PlacementText(const std::vector<LayerRange>& ranges,
                          const std::vector<std::string>& notes = {},
                          const std::vector<PartsText>& parts = {});
// Returns a text such as "32L over CPU + dGPU", for devices that share rows of every matrix.
std::string RowsText(const std::vector<std::string>& devices, int layers);

}  // namespace trine
