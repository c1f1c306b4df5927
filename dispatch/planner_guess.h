// Placements that keep to what devices share, made quickly: a good one makes a search short.
#ifndef TRINE_DISPATCH_PLANNER_GUESS_H_
#define TRINE_DISPATCH_PLANNER_GUESS_H_

#include <cstdint>

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

// What the placement costs, whether it keeps to the limits or not.
int64_t CostOf(const SumProblem& problem, const Path& path);
// The devices with a segment in groups that are overdrawn; none where all groups hold.
DeviceSet Overdrawing(const SumProblem& problem, const Path& path);

// Offers `best` placements that keep to the groups, from relaxed ones in which members of the
// groups that `path` overdraws have fixed shares.
void GuessShares(const SumProblem& problem, const Path& path, Found& best);

}  // namespace trine::planner

#endif  // TRINE_DISPATCH_PLANNER_GUESS_H_
