// Finds the placement of least cost that keeps to all limits.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "dispatch/planner/bound.h"
#include "dispatch/planner/chain.h"

namespace trine::planner {

// The cost of a placement is this times its ns, plus its number of segments. So costs compare time
// first, then the number of segments.
inline constexpr int64_t kCostPerNs = 16;
static_assert(kMostDevices < kCostPerNs);

// Makes the problem whose costs are the chain's times. Devices and pools have limits in it.
SearchProblem MakeSearchProblem(const Chain& chain, DeviceMask required);

// The work that searches have done, and may do.
struct Effort {
  uint64_t steps = 0;
  uint64_t max_steps = 0;
  bool exhausted = false;  // steps ran out before something was proven
  bool uncounted = false;  // a search had no room to count a group, so it proved nothing

  bool Spent() {
    exhausted = exhausted || steps > max_steps;
    return exhausted;
  }
  // Returns whether the searches have proven what they returned.
  bool exact() const { return !exhausted && !uncounted; }
};

struct Found {
  int64_t cost = kInfinite;  // without a placement: the most that one may cost
  Path path;

  bool ok() const { return path.size > 0; }
  // Takes the placement if it costs less, or as much and is earlier by the rule for ties.
  void Offer(int64_t other_cost, const Path& other) {
    if (other_cost > cost || (ok() && std::tie(other_cost, other) >= std::tie(cost, path))) return;
    cost = other_cost;
    path = other;
  }
};

// Returns what the placement adds up to.
int64_t SumOf(const Measure& measure, const Path& path);

// Finds the placement of least cost. `known` placements take part in the comparison, even if they
// break a limit of the problem: a placement whose ends share a matrix may need less memory than the
// problem says. Unless the effort is exact afterwards, another placement may be better.
Found FindLeast(const SearchProblem& problem, const std::vector<Path>& known, Effort& effort);

// Finds any placement, whatever it costs.
std::optional<Path> FindAny(const SearchProblem& problem, Effort& effort);

}  // namespace trine::planner
