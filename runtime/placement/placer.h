// Decides which layers of a model go on which device: as they were asked for, or as the planner
// finds best. Not thread-safe.
#ifndef TRINE_RUNTIME_PLACEMENT_PLACER_H_
#define TRINE_RUNTIME_PLACEMENT_PLACER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/device_costs.h"
#include "dispatch/placement.h"
#include "dispatch/planner.h"
#include "dispatch/size_rule.h"
#include "dispatch/split_spec.h"
#include "runtime/device_set.h"
#include "runtime/engine_options.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/model_config.h"
#include "runtime/model/segment_graph.h"
#include "runtime/model_places.h"
#include "runtime/placement/elsewhere.h"
#include "runtime/placement/problem.h"

namespace trine {

// A placement, with what it was found among.
struct PlacementReport {
  PlacementProblem problem;
  PlanOptions options;
  Placement placement;
  bool searched = false;  // else it was asked for
  // Rows, and tensors by name, that are not with their layers: where there are any, the times are
  // not those of this placement, and nobody knows them.
  std::vector<MovedWeights> moved;
  bool rows = false;  // the devices share rows of every matrix

  bool predicted() const { return moved.empty(); }
};

// Who may help whom with large passes, and what is known of their costs.
struct DispatchChoice {
  SizeRule rule;
  std::map<std::string, KnownCosts> costs;  // by tier name
  std::vector<std::string> helpers;         // tier names
  std::map<std::string, uint64_t> limits;   // of memory, likewise
  bool log = false;                         // decisions are to be said
};

class Placer {
 public:
  // `devices` outlives it.
  Placer(const EngineOptions& options, std::shared_ptr<const gguf::File> file,
         const ModelConfig& config, const SegmentLimits& limits, DeviceSet* devices);

  absl::StatusOr<ModelPlaces> Choose();
  // Whether it is the planner that decides.
  bool searches() const {
    return options_.split_mode == SplitMode::kLayer && options_.tensor_split.empty() &&
           options_.gpu_layers < 0;
  }
  // What it decides on when devices have failed.
  absl::StatusOr<std::vector<LayerRange>> ChooseWithout(const std::vector<std::string>& lost) {
    return Plan(lost);
  }
  // For a model in these places.
  DispatchChoice ChooseDispatch(const ModelPlaces& places,
                                const std::vector<std::string>& lost) const;
  // The devices that may be used because somebody named them, as tiers.
  std::vector<std::string> Named() const;
  // Devices that have failed while places were chosen, which those are without; since the last time
  // this was asked.
  std::vector<DeviceFailure> TakeFailures() { return std::exchange(failed_, {}); }
  // What Choose would do, with predictions and reasons.
  absl::StatusOr<PlacementReport> Explain();

 private:
  absl::StatusOr<std::vector<CandidateDevice>> Candidates(const std::vector<std::string>& lost,
                                                          bool warn) const;
  absl::StatusOr<ProblemOptions> Describe(const std::vector<std::string>& lost) const;
  absl::StatusOr<PlacementReport> Search(const std::vector<std::string>& lost, bool explain);
  // Asks again without those that fail, as the others may have counted on them.
  absl::StatusOr<PlacementProblem> ProblemOfThoseThatAnswer(const std::vector<std::string>& lost,
                                                            ProblemOptions* options);
  std::string CalibrationPath() const;
  absl::StatusOr<PlacementProblem> Problem(const ProblemOptions& options);
  absl::StatusOr<std::vector<LayerRange>> Plan(const std::vector<std::string>& lost);
  bool HasFailed(const std::string& device) const;
  absl::StatusOr<PlacementReport> Evaluate(const ModelPlaces& places);
  absl::Status AddMoved(const ModelPlaces& places, PlacementReport* report);
  void Warn(const std::string& message) const;

  const EngineOptions options_;
  const std::shared_ptr<const gguf::File> file_;
  const ModelConfig config_;
  const SegmentLimits limits_;
  DeviceSet* const devices_;
  std::vector<DeviceFailure> failed_;
};

// "CPU(4L) + iGPU(12L) + dGPU(16L)".
std::string PlacementText(const std::vector<LayerRange>& ranges);
// "32L over CPU + dGPU": of devices that share all rows.
std::string RowsText(const std::vector<std::string>& devices, int layers);

}  // namespace trine

#endif  // TRINE_RUNTIME_PLACEMENT_PLACER_H_
