// Which groups of ops are one launch at a run's parameters, from the graph alone: products of one x
// with few columns, and what is next to them; of one token also what is before its attention.
#ifndef TRINE_BACKENDS_HIP_GROUP_RUNS_H_
#define TRINE_BACKENDS_HIP_GROUP_RUNS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "backends/common/fusion.h"
#include "trine/backend_sdk.h"

namespace trine::hip {

using backends::OpGroup;

// More columns than this are tiles'.
inline constexpr int64_t kGemvColumns = 8;

// One group; products; (norm,) gate, up, glu; rope, stores, attention.
struct GroupRun {
  uint32_t first = 0, count = 1;  // groups
  bool norm = false;              // the first one is that of the glu's x, of one column
  bool glu = false;               // the last one is of the two before it, which write nothing
  bool attends = false;           // kRotateStore, and the attention of what it rotates, one token
  bool adds = false;              // the op behind is an add to the one product, and done along
  bool added = false;             // the first op has been done along
  // Quantised activations lie in one of two places, since the glu writes them while others read.
  uint32_t from = 0, to = 0;  // where products find them, and where what is quantised goes

  uint32_t products() const { return attends ? 0 : count - (norm ? 1 : 0) - (glu ? 1 : 0); }
  bool joined() const { return count > 1 || adds; }

  bool operator==(const GroupRun&) const = default;
};

// All groups, in order; each by itself without `join`.
std::vector<GroupRun> JoinGroups(const sdk::Graph& graph, const std::vector<OpGroup>& groups,
                                 const int64_t* params, bool join);

// What a run is called where times are told: valid for ever.
const char* RunName(const sdk::Graph& graph, std::span<const OpGroup> groups, const GroupRun& run);

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_GROUP_RUNS_H_
