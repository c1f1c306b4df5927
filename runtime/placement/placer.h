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
  // The weights that are on another device than their layers. If there are any, the predicted times
  // do not hold for this placement.
  std::vector<MovedWeights> moved;
  bool rows = false;  // the devices share rows of every matrix

  bool predicted() const { return moved.empty(); }  // whether the predicted times hold
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
  // Returns the layers of each device as the planner chooses them without the devices in `lost`.
  absl::StatusOr<std::vector<LayerRange>> ChooseWithout(const std::vector<std::string>& lost) {
    return Plan(lost);
  }
  // Returns the devices that may help a model in these places with large passes.
  DispatchChoice ChooseDispatch(const ModelPlaces& places,
                                const std::vector<std::string>& lost) const;
  // Returns the tier names of devices that the user named.
  std::vector<std::string> Named() const;
  // Returns the devices that have failed since the last TakeFailures while places were chosen. No
  // chosen place is on one of them.
  std::vector<DeviceFailure> TakeFailures() { return std::exchange(failed_, {}); }
  // Returns what Choose would return, with predictions and reasons.
  absl::StatusOr<PlacementReport> Explain();

 private:
  absl::StatusOr<std::vector<CandidateDevice>> Candidates(const std::vector<std::string>& lost,
                                                          bool warn) const;
  absl::StatusOr<ProblemOptions> Describe(const std::vector<std::string>& lost) const;
  absl::StatusOr<PlacementReport> Search(const std::vector<std::string>& lost, bool explain);
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
  absl::StatusOr<std::vector<LayerRange>> Plan(const std::vector<std::string>& lost);
  bool HasFailed(const std::string& device) const;
  absl::StatusOr<PlacementReport> Evaluate(const ModelPlaces& places);
  absl::Status AddMoved(const ModelPlaces& places, PlacementReport* report);
  void Warn(const std::string& message) const;

  const PlacementRequest request_;
  const PlacerOptions options_;
  const std::shared_ptr<const gguf::File> file_;
  const ModelConfig config_;
  const SegmentLimits limits_;
  DeviceSet* const devices_;
  std::vector<DeviceFailure> failed_;
};

// Returns a text such as "CPU(4L) + iGPU(12L, prompts by cpu) + dGPU(16L)". `notes`: what is said
// of each range; may be empty.
std::string PlacementText(const std::vector<LayerRange>& ranges,
                          const std::vector<std::string>& notes = {});
// Returns a text such as "32L over CPU + dGPU", for devices that share rows of every matrix.
std::string RowsText(const std::vector<std::string>& devices, int layers);

}  // namespace trine
