// One search by the rules of a strategy, without reasons.
#ifndef TRINE_DISPATCH_PLANNER_STRATEGY_H_
#define TRINE_DISPATCH_PLANNER_STRATEGY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dispatch/placement.h"
#include "dispatch/planner.h"
#include "dispatch/planner_problem.h"

namespace trine::planner {

struct Answer {
  std::vector<PlacedRange> ranges;
  // What the strategy minimises: ns of the nominal request, or a level (planner_bottleneck.h).
  int64_t objective = 0;
};

struct Outcome {
  std::optional<Answer> answer;  // none: nothing fits, if `exact`
  bool exact = true;
  uint64_t steps = 0;
};

// `required`: a device of the problem that must have a segment.
Outcome Search(const PlanProblem& problem, const PlanOptions& options,
               std::optional<size_t> required = std::nullopt);

}  // namespace trine::planner

#endif  // TRINE_DISPATCH_PLANNER_STRATEGY_H_
