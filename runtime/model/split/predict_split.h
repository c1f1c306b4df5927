// Predicts how long a pass takes through ops that run on several devices: the pieces of a step at
// the same time, then the moves of values between devices.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "dispatch/cost/cost_model.h"
#include "dispatch/cost/device_costs.h"
#include "runtime/model/arch/segment_graph.h"
#include "runtime/model/split/tensor_places.h"

namespace trine {

struct SplitTime {
  double ns = 0;                // all of it
  std::vector<double> busy_ns;  // by device of the owners: how long it works
  // The bytes of weights that the main device's products read.
  double weight_bytes = 0;
  bool unknown = false;  // the cost of an op is missing
};

// Predicts a pass through the graph of `segment`. `costs`: by device of the owners. `in_slots`: for
// divided layers, by their number in the model, the part of the choices that are of experts in
// slots; of a layer that is missing, as if tokens chose evenly. REQUIRES: segment.graph.Finish()
// has not been called.
SplitTime PredictSplit(const SegmentGraph& segment, const SegmentOwners& owners,
                       const std::vector<const DeviceCosts*>& costs, const PassShape& pass,
                       const std::map<int64_t, double>& in_slots = {});

}  // namespace trine
