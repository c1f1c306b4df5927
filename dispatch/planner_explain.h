// Why a placement is as it is, found by planning again under other limits.
#ifndef TRINE_DISPATCH_PLANNER_EXPLAIN_H_
#define TRINE_DISPATCH_PLANNER_EXPLAIN_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "dispatch/placement.h"
#include "dispatch/planner.h"
#include "dispatch/planner_strategy.h"

namespace trine::planner {

// Fills in PlacementSegment::bound and change: which limit, were it lifted, would let the strategy
// do better, and by how much.
void ExplainSegments(const PlanProblem& problem, const PlanOptions& options, const Answer& answer,
                     Placement& placement);

// Fills in Placement::left_out: why it is, and what a placement with the device would cost.
void ExplainLeftOut(const PlanProblem& problem, const PlanOptions& options, const Answer& answer,
                    Placement& placement);

// What is needed and what there is.
absl::Status NothingFits(const PlanProblem& problem, const PlanOptions& options, bool proven);

// What the strategy minimises, for people: "1.20 s", or "61 %" of memory.
std::string ObjectiveText(const PlanOptions& options, int64_t objective);
// The options of a search that only serves to explain: it may take less work.
PlanOptions Briefly(const PlanOptions& options);

}  // namespace trine::planner

#endif  // TRINE_DISPATCH_PLANNER_EXPLAIN_H_
