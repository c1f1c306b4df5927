// The placement of least total time where devices share pools or domains.
#ifndef TRINE_DISPATCH_PLANNER_SUM_SEARCH_H_
#define TRINE_DISPATCH_PLANNER_SUM_SEARCH_H_

#include <cstdint>
#include <vector>

#include "dispatch/planner_chain.h"
#include "dispatch/planner_relaxed.h"

namespace trine::planner {

struct Found {
  int64_t cost = kInfinite;  // as SumProblem counts it
  Path path;
  bool exact = true;  // false: steps ran out, and this is the best that was found until then
  uint64_t steps = 0;

  bool ok() const { return cost < kInfinite; }
};

// `known`, placements that are allowed though they may break a limit of the problem (such as one
// that fits because its ends share a matrix), take part in the comparison.
Found SearchSum(const SumProblem& problem, const std::vector<Path>& known, uint64_t max_steps);

// What the placement costs, whether it keeps to the limits or not.
int64_t CostOf(const SumProblem& problem, const Path& path);
// The devices with a segment in groups that are overdrawn; none where all groups hold.
DeviceSet Overdrawing(const SumProblem& problem, const Path& path);

}  // namespace trine::planner

#endif  // TRINE_DISPATCH_PLANNER_SUM_SEARCH_H_
