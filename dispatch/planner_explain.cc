#include "dispatch/planner_explain.h"
namespace trine::planner {
void Explain(const PlanProblem&, const PlanOptions&, const Answer&, Placement&) {}
absl::Status NothingFits(const PlanProblem&, const PlanOptions&) {
  return absl::ResourceExhaustedError("nothing fits");
}
}  // namespace trine::planner
