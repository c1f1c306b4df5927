// Weights that are on other devices than their layers: rows of matrices, and tensors placed by
// name.
#ifndef TRINE_RUNTIME_PLACEMENT_ELSEWHERE_H_
#define TRINE_RUNTIME_PLACEMENT_ELSEWHERE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/placement.h"
#include "dispatch/planner_problem.h"
#include "runtime/device_set.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/model/model_config.h"
#include "runtime/model/segment_graph.h"
#include "runtime/model_places.h"

namespace trine {

// What of one range's matrices is on one other device. Bytes are those of the file.
struct MovedWeights {
  size_t range = 0;    // of ModelPlaces::ranges
  std::string device;  // of its tier
  int whole = 0;       // matrices that are there altogether
  int parts = 0;       // matrices of which some rows are
  uint64_t bytes = 0;
};

// Opens the devices.
absl::StatusOr<std::vector<MovedWeights>> FindMovedWeights(const gguf::File& file,
                                                           const ModelConfig& config,
                                                           const SegmentLimits& limits,
                                                           const ModelPlaces& places,
                                                           DeviceSet* devices);

// Counts the bytes where they are. The placement's segments are the places' ranges; its times are
// left as they are for whole layers.
void CountMoved(const std::vector<MovedWeights>& moved, const PlanProblem& problem,
                Placement* placement);

}  // namespace trine

#endif  // TRINE_RUNTIME_PLACEMENT_ELSEWHERE_H_
