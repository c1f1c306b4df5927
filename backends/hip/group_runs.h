// Decides which groups of ops become one launch at a run's parameters, from the graph alone:
// products of the same x with few columns, and the ops next to them; for one token also the ops
// before attention.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/common/fusion.h"
#include "trine/backend_sdk.h"

namespace trine::hip {

using backends::OpGroup;

// Products of more columns than this use tiles; others use a gemv.
inline constexpr int64_t kGemvColumns = 8;
// The limit for products with experts: their columns mostly have different weights.
inline constexpr int64_t kGemvExpertColumns = 32;

// Consecutive groups that are launched together. A run is one of these: a single group; products of
// one x; (norm or route,) gate, up, glu; norm and a product of floats; down and combine of experts;
// (norms of heads,) rope, stores, attention.
struct GroupRun {
  uint32_t first = 0, count = 1;  // groups [first, first + count)
  bool norm = false;    // the first group is the norm of the products' x, which has one column
  bool routes = false;  // the first group selects the experts of the glu's products
  bool glu = false;     // the last group is the glu of the two products before, which write nothing
  bool attends = false;   // kRotateStore and the attention of what it rotates, for one token
  bool norms = false;     // the first two groups are the norms of what kRotateStore rotates
  bool combines = false;  // the last group combines what the one product with experts makes
  bool adds = false;      // the run also does the op after it, which adds to its one product
  bool added = false;     // the run before has already done the first op
  // Quantised activations have two places, because a glu writes the activations for the next
  // product while its own are still read.
  uint32_t from = 0, to = 0;  // the place that products read, and the place for results

  uint32_t products() const {
    return attends ? 0 : count - (norm || routes ? 1 : 0) - (glu || combines ? 1 : 0);
  }
  bool joined() const { return count > 1 || adds; }

  bool operator==(const GroupRun&) const = default;
};

// Divides all groups into runs, in order. If `join` is false, each group is a run.
std::vector<GroupRun> JoinGroups(const sdk::Graph& graph, const std::vector<OpGroup>& groups,
                                 const int64_t* params, bool join);

// Returns the run's name for time reports. The string is never freed.
const char* RunName(const sdk::Graph& graph, std::span<const OpGroup> groups, const GroupRun& run);

}  // namespace trine::hip
