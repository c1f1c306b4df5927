// Describes the planner's problem for one model on this machine's devices: bytes from the graphs of
// the layers, times from the known costs of each device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/cost/size_rule.h"
#include "dispatch/planner/placement.h"
#include "dispatch/planner/problem.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/arch/model_config.h"
#include "runtime/model/arch/segment_graph.h"
#include "runtime/placement/calibration.h"
#include "runtime/placement/device_set.h"
#include "runtime/placement/layer_ranges.h"

namespace trine {

// A device that may get layers, or is listed with the reason why it may not.
struct CandidateDevice {
  std::string name;      // its tier name
  std::string left_out;  // why it may not be used; "": it may
};

// Slots of a layer for experts whose weights are elsewhere.
struct PlannedSlots {
  int64_t slots = 0;
  int64_t experts = 0;  // of the layer
  double share = 0;     // the part of the choices that are expected to be of experts in slots
  // The layer's device is expected to read the experts where the CPU reads them: it gets `share` of
  // the choices without slots.
  bool in_place = false;
};

// Weights on other devices than their layers.
struct PartPlaces {
  std::map<std::string, std::string> tensors;  // [weight]: the tier name of its device
  std::vector<DeviceShare> rows;               // the devices that share rows; empty: none do
  std::map<int64_t, PlannedSlots> slots;       // by layer

  bool empty() const { return tensors.empty() && rows.empty(); }
};

// A mode of a device that the planner may choose for layers: some of their weights are elsewhere.
struct ModeOption {
  std::string device;  // its tier name
  std::string what;    // "experts"
  std::map<std::string, std::string> tensors;
  std::map<int64_t, PlannedSlots> slots;  // by layer
};

// The choices that go into the problem, apart from the model.
struct ProblemOptions {
  std::vector<CandidateDevice> candidates;
  std::map<std::string, uint64_t> memory_limits;  // by tier name
  NominalRequest request;
  bool pack = true;
  bool file_mapped = true;
  // true: counts no bytes for weights that the CPU reads in the file's own pages. A model that fits
  // only so may have to be read from the disk again and again.
  bool cpu_from_file = false;
  // true: devices may help each other with large passes, as `rule` says.
  bool dispatch = false;
  std::optional<std::set<std::string>> helpers;  // the devices that may help; nullopt: all
  SizeRule rule;
  PartPlaces fixed;               // what the user placed, whatever devices the layers go to
  std::vector<ModeOption> modes;  // what the planner may choose beside whole layers
};

// A device that failed while it was described, and its error.
struct DeviceFailure {
  std::string name;  // its tier name
  absl::Status why;
};

// The planner's problem, and how it came about. Modes follow the devices.
struct PlacementProblem {
  PlanProblem plan;
  std::vector<bool> measured;  // by entry: its times come from a calibration
  // By entry, if its device was measured: the costs that are guesses all the same, and what kept
  // the machine busy while it was measured ("": nothing).
  std::vector<std::vector<std::string>> guessed;
  std::vector<std::string> busy;
  std::vector<std::string> helpers;  // by entry: the helper that prefill counts on; "": none
  std::vector<bool> fetches;         // by entry: prefill counts on fetched weights
  std::vector<std::map<int64_t, PlannedSlots>> slots;  // by entry: those of layers that have any
  // The devices that failed. If there are any, the rest of the problem is not described.
  std::vector<DeviceFailure> failed;
};

// Returns the slots of a segment's layers, with the average of their shares; nullopt: it has none.
std::optional<PlannedSlots> SlotsOf(const PlacementProblem& problem, const PlacedRange& range);

// Describes the problem. Opens the candidates; leaves out a device that can't be opened, with the
// reason.
absl::StatusOr<PlacementProblem> DescribeProblem(std::shared_ptr<const gguf::File> file,
                                                 const ModelConfig& config,
                                                 const SegmentLimits& limits,
                                                 const Calibration& calibration,
                                                 const ProblemOptions& options, DeviceSet* devices);

}  // namespace trine
