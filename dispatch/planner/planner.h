// Decides which layers go on which device. A pure function: it takes numbers and returns a
// placement with reasons; the same numbers give the same placement. docs/placement.md says what is
// minimised and how.
#pragma once

#include "absl/status/statusor.h"
#include "dispatch/planner/placement.h"
#include "dispatch/planner/problem.h"

namespace trine {

// Returns the best placement. Returns RESOURCE_EXHAUSTED if nothing fits, saying how much memory is
// needed and how much there is; INVALID_ARGUMENT if the problem makes no sense.
absl::StatusOr<Placement> FindPlacement(const PlanProblem& problem, const PlanOptions& options);

}  // namespace trine
