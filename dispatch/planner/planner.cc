#include "dispatch/planner/planner.h"

#include "dispatch/planner/strategy.h"

namespace trine {

absl::StatusOr<Placement> FindPlacement(const PlanProblem& problem, const PlanOptions& options) {
  if (absl::Status s = CheckProblem(problem, options.request); !s.ok()) return s;
  const planner::Outcome outcome = planner::Search(problem, options);
  if (!outcome.answer.has_value()) return planner::NothingFits(problem, options, outcome.exact);
  absl::StatusOr<Placement> placement =
      EvaluatePlacement(problem, options.request, outcome.answer->ranges);
  if (!placement.ok()) return placement.status();
  placement->exact = outcome.exact;
  placement->search_steps = outcome.steps;
  if (options.explain) {
    planner::ExplainSegments(problem, options, *outcome.answer, *placement);
    planner::ExplainLeftOut(problem, options, *outcome.answer, *placement);
  }
  return placement;
}

}  // namespace trine
