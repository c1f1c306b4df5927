// Predicts how long the ops of a graph take on a device, from the device's costs. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "dispatch/cost/device_costs.h"
#include "dispatch/exec/op_graph.h"

namespace trine {

// The sizes of the pass to predict.
struct PassShape {
  std::vector<int64_t> params;  // the value of each parameter, in the order of OpGraph::params()
  double positions = 0;         // the average number of positions that a token attends to, if no
                                // window limits them
};

struct PredictedTime {
  double ns = 0;  // lacks the ops whose cost is missing
  // The bytes of weights that products read; of experts, those that the tokens are assumed to
  // choose.
  double weight_bytes = 0;
  // True if the cost of an op is missing, because the device can't run the op or no such op was
  // measured.
  bool unknown = false;
};

// Returns whether an op is a product with weights.
bool IsProduct(const OpGraph& graph, size_t op);
// Returns the number of multiplications and additions of a product. REQUIRES: IsProduct(graph, op).
double ProductFlops(const OpGraph& graph, size_t op, const PassShape& pass);

// The part of the chosen experts that an op computes, if several devices divide them.
struct ExpertPart {
  double choices = 1;  // its part of all choices
  // The most experts that it may have to compute; 0: all that it has weights of.
  double experts = 0;
};

// Predicts one op, without `run_ns` and `correction` of DeviceCosts. `part` counts for products
// with experts.
PredictedTime PredictOp(const DeviceCosts& costs, const OpGraph& graph, size_t op,
                        const PassShape& pass, const ExpertPart& part = {});
// Predicts a graph: the sum of its ops, times `correction` at `tokens`, the number of tokens of the
// pass. Does not include `run_ns`.
PredictedTime PredictGraph(const DeviceCosts& costs, const OpGraph& graph, const PassShape& pass,
                           double tokens = 1);

// Predicts a graph as PredictGraph does, but with weights in the file's layout
// (DeviceCosts::unpacked).
PredictedTime PredictUnpacked(const DeviceCosts& costs, const OpGraph& graph, const PassShape& pass,
                              double tokens);
// How a device that does not hold a product's weights gets them.
enum class BorrowedWeights {
  kStreamed,  // it fetches them, of all experts, while it computes: the longer of the times counts
  kShared,    // it reads them in memory that it shares with the device that holds them
};

// Predicts one product on a device that does not hold the weights. Includes `run_ns` and moving the
// input and the result, but no `correction`. REQUIRES: IsProduct(graph, op).
PredictedTime PredictBorrowed(const DeviceCosts& costs, BorrowedWeights weights,
                              const OpGraph& graph, size_t op, const PassShape& pass);

}  // namespace trine
