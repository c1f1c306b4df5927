// How long the ops of a graph take on a device, by the device's costs. Pure.
#ifndef TRINE_DISPATCH_COST_MODEL_H_
#define TRINE_DISPATCH_COST_MODEL_H_

#include <cstdint>
#include <vector>

#include "dispatch/device_costs.h"
#include "dispatch/op_graph.h"

namespace trine {

// A pass whose time is asked for.
struct PassShape {
  std::vector<int64_t> params;  // of the graph
  double positions = 0;         // that a token sees on average, before a window
};

struct PredictedTime {
  double ns = 0;
  double weight_bytes = 0;  // read from memory, each matrix once
  bool unknown = false;     // an op whose cost is not known: the device can't, or was not measured
};

// Whether an op is a product with weights.
bool IsProduct(const OpGraph& graph, size_t op);
// Multiplications and additions of a product.
double ProductFlops(const OpGraph& graph, size_t op, const PassShape& pass);

// Of one op.
PredictedTime PredictOp(const DeviceCosts& costs, const OpGraph& graph, size_t op,
                        const PassShape& pass);
// Of all of them, one after the other, without the run itself. `tokens`: in the pass.
PredictedTime PredictGraph(const DeviceCosts& costs, const OpGraph& graph, const PassShape& pass,
                           double tokens = 1);

// The same on a device that reads weights as the file has them.
PredictedTime PredictUnpacked(const DeviceCosts& costs, const OpGraph& graph, const PassShape& pass,
                              double tokens);
// Of a product, by itself, on a device that has not got its weights: they are brought in while it
// computes, and its input and result are moved.
PredictedTime PredictStreamed(const DeviceCosts& costs, const OpGraph& graph, size_t op,
                              const PassShape& pass);

}  // namespace trine

#endif  // TRINE_DISPATCH_COST_MODEL_H_
