// Predicts how long the ops of a graph take on a device, from the device's costs. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "dispatch/cost/device_costs.h"
#include "dispatch/exec/op_graph.h"

namespace trine {

// The sizes of the pass to predict.
struct PassShape {
  std::vector<int64_t> params;  // values of the graph's parameters
  double positions = 0;         // the average number that a token sees, before a window limits it
};

struct PredictedTime {
  double ns = 0;
  double weight_bytes = 0;  // read from memory, each matrix once
  // True when the cost of an op is missing: the device can't run it, or was not measured.
  bool unknown = false;
};

// Returns whether an op is a product with weights.
bool IsProduct(const OpGraph& graph, size_t op);
// Returns the number of multiplications and additions of a product.
double ProductFlops(const OpGraph& graph, size_t op, const PassShape& pass);

// Predicts one op.
PredictedTime PredictOp(const DeviceCosts& costs, const OpGraph& graph, size_t op,
                        const PassShape& pass);
// Predicts all ops one after the other, without `run_ns`. `tokens`: the number in the pass.
PredictedTime PredictGraph(const DeviceCosts& costs, const OpGraph& graph, const PassShape& pass,
                           double tokens = 1);

// Predicts all ops as PredictGraph does, with weights in the layout of the file.
PredictedTime PredictUnpacked(const DeviceCosts& costs, const OpGraph& graph, const PassShape& pass,
                              double tokens);
// Predicts one product alone on a device that does not hold the weights. They are brought in while
// it computes; its input and its result are moved.
PredictedTime PredictStreamed(const DeviceCosts& costs, const OpGraph& graph, size_t op,
                              const PassShape& pass);

}  // namespace trine
