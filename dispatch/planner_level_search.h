// Whether there is a placement in which nothing is busier than a level.
#ifndef TRINE_DISPATCH_PLANNER_LEVEL_SEARCH_H_
#define TRINE_DISPATCH_PLANNER_LEVEL_SEARCH_H_

#include <cstdint>
#include <optional>

#include "dispatch/planner_chain.h"
#include "dispatch/planner_relaxed.h"

namespace trine::planner {

struct LevelEffort {
  uint64_t steps = 0;
  uint64_t max_steps = 0;
  bool exhausted = false;  // steps ran out: "none" is then not proven
  // The least that was refused for being more than a group held to the level has: up to there a
  // higher level makes no difference to the groups.
  int64_t refused = kInfinite;
};

// `problem` has the level in its reach, its groups' capacities and its pairs. Costs are not looked
// at.
std::optional<Path> SearchLevel(const SumProblem& problem, LevelEffort& effort);

}  // namespace trine::planner

#endif  // TRINE_DISPATCH_PLANNER_LEVEL_SEARCH_H_
