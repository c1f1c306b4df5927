// Why a placement is as it is, found by planning again under other limits.
#ifndef TRINE_DISPATCH_PLANNER_EXPLAIN_H_
#define TRINE_DISPATCH_PLANNER_EXPLAIN_H_

#include "absl/status/status.h"
#include "dispatch/placement.h"
#include "dispatch/planner.h"
#include "dispatch/planner_strategy.h"

namespace trine::planner {

// Fills in PlacementSegment::bound and change, and Placement::left_out.
void Explain(const PlanProblem& problem, const PlanOptions& options, const Answer& answer,
             Placement& placement);

// What is needed and what there is.
absl::Status NothingFits(const PlanProblem& problem, const PlanOptions& options);

}  // namespace trine::planner

#endif  // TRINE_DISPATCH_PLANNER_EXPLAIN_H_
