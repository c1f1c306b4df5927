// Answers questions about the ops of a graph, and converts their attributes into the kernels'
// parameters.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/reference/ops.h"
#include "trine/backend_sdk.h"

namespace trine::backends {

inline bool IsProduct(uint32_t kind) {
  return kind == TRINE_OP_MATMUL || kind == TRINE_OP_MOE_MATMUL;
}
// Returns whether the op is a product of quantised weights.
bool IsQuantizedProduct(const sdk::Graph& graph, const sdk::Op& op);

bool SameDims(const trine_tensor& a, const trine_tensor& b);

reference::ActivationKind ActivationOf(const sdk::Op& op);
reference::AttentionParams AttentionParamsOf(const sdk::Op& op);
reference::GluParams GluParamsOf(const sdk::Op& op);
reference::RopeMode RopeModeOf(const sdk::Op& op);
reference::MoeRouteParams RouteParamsOf(const sdk::Op& op);

// Rounds up to whole chunks.
inline int64_t WholeChunks(int64_t positions) {
  return (positions + TRINE_KV_CHUNK - 1) / TRINE_KV_CHUNK * TRINE_KV_CHUNK;
}

// Returns how many positions attention may see in a run, rounded up to whole chunks. `in_table` is
// the number of positions in its block table.
int64_t PositionsSeen(const sdk::Graph& graph, int64_t in_table, const int64_t* params);

// Returns "" if all attributes of the op are known, else which one only a newer host knows.
std::string WhyNotAttributes(const sdk::Op& op);

}  // namespace trine::backends
