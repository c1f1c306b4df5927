// The placement of least total time where devices share pools or domains.
#ifndef TRINE_DISPATCH_PLANNER_SUM_SEARCH_H_
#define TRINE_DISPATCH_PLANNER_SUM_SEARCH_H_

#include <cstdint>
#include <vector>

#include "dispatch/planner_guess.h"
#include "dispatch/planner_relaxed.h"

namespace trine::planner {

// `known`, placements that are allowed though they may break a limit of the problem (such as one
// that fits because its ends share a matrix), take part in the comparison. Without steps, what can
// be had without a search.
Found SearchSum(const SumProblem& problem, const std::vector<Path>& known, uint64_t max_steps);

}  // namespace trine::planner

#endif  // TRINE_DISPATCH_PLANNER_SUM_SEARCH_H_
