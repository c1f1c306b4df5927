// Which groups of ops are one launch at a run's parameters: products of one x with few columns, and
// the glu of two of them. From the graph alone.
#ifndef TRINE_BACKENDS_HIP_PRODUCT_RUNS_H_
#define TRINE_BACKENDS_HIP_PRODUCT_RUNS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "backends/common/fusion.h"
#include "trine/backend_sdk.h"

namespace trine::hip {

using backends::OpGroup;

// More columns than this are tiles'.
inline constexpr int64_t kGemvColumns = 8;

struct GroupRun {
  uint32_t first = 0, count = 1;  // groups; several are products, but for the glu
  bool glu = false;               // the last one is of the two before it, which write nothing
  // Quantised activations lie in one of two places, since the glu writes them while others read.
  uint32_t from = 0, to = 0;  // where products find them, and where what is quantised goes

  bool operator==(const GroupRun&) const = default;
};

// All groups, in order; each by itself without `join`.
std::vector<GroupRun> JoinProducts(const sdk::Graph& graph, const std::vector<OpGroup>& groups,
                                   const int64_t* params, bool join);

// What a run is called where times are told: a constant.
const char* RunName(const sdk::Graph& graph, std::span<const OpGroup> groups, const GroupRun& run);

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_PRODUCT_RUNS_H_
