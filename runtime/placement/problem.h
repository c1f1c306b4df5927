// The planner's problem for one model on this machine's devices: bytes by the graphs of the layers,
// times by what each device is known to cost.
#ifndef TRINE_RUNTIME_PLACEMENT_PROBLEM_H_
#define TRINE_RUNTIME_PLACEMENT_PROBLEM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/planner_problem.h"
#include "dispatch/size_rule.h"
#include "runtime/device_set.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/model_config.h"
#include "runtime/model/segment_graph.h"
#include "runtime/placement/calibration.h"

namespace trine {

// A device that may get layers, or is named for saying why it does not.
struct CandidateDevice {
  std::string name;      // of its tier
  std::string left_out;  // why it must not be used; "": it may be
};

struct ProblemOptions {
  std::vector<CandidateDevice> candidates;
  std::map<std::string, uint64_t> memory_limits;  // by tier name
  NominalRequest request;
  bool pack = true;
  bool file_mapped = true;
  // Counts nothing for weights that the CPU reads in the file's own pages: such a model runs, but
  // from the disk.
  bool cpu_from_file = false;
  // Whether devices may help each other with large passes, and when.
  bool dispatch = false;
  SizeRule rule;
};

// A device that failed when it was asked, and how.
struct DeviceFailure {
  std::string name;  // of its tier
  absl::Status why;
};

struct PlacementProblem {
  PlanProblem plan;
  std::vector<bool> measured;  // by device: its times come from a calibration
  std::vector<std::string>
      helpers;  // by device: with whose help prefill is predicted; "": nobody's
  // Left out, though what is said of the others may still count on their help.
  std::vector<DeviceFailure> failed;
};

// Opens the candidates. One that can't be opened is left out, with the reason.
absl::StatusOr<PlacementProblem> DescribeProblem(std::shared_ptr<const gguf::File> file,
                                                 const ModelConfig& config,
                                                 const SegmentLimits& limits,
                                                 const Calibration& calibration,
                                                 const ProblemOptions& options, DeviceSet* devices);

}  // namespace trine

#endif  // TRINE_RUNTIME_PLACEMENT_PROBLEM_H_
