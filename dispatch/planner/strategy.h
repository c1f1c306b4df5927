// Searches for the placement that is best by a strategy. Explains the result, by searching again
// under other limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "dispatch/planner/placement.h"
#include "dispatch/planner/problem.h"

namespace trine::planner {

// The best placement of a search.
struct Answer {
  std::vector<PlacedRange> ranges;
  // The value that the strategy minimises: ns of the nominal request, or a level (level.h).
  int64_t objective = 0;
};

struct Outcome {
  std::optional<Answer> answer;  // nullopt: nothing was found; if `exact`, nothing fits
  bool exact = true;
  uint64_t steps = 0;
};

// Runs one search, without explaining the result. `required`: a device that must have a segment.
Outcome Search(const PlanProblem& problem, const PlanOptions& options,
               std::optional<size_t> required = std::nullopt);

// Fills in PlacementSegment::bound and change: the limit that decides a segment's size, and how
// much better the placement would be without it.
void ExplainSegments(const PlanProblem& problem, const PlanOptions& options, const Answer& answer,
                     Placement& placement);

// Fills in Placement::left_out: why a device is not used, and how long a placement with it would
// take.
void ExplainLeftOut(const PlanProblem& problem, const PlanOptions& options, const Answer& answer,
                    Placement& placement);

// Returns RESOURCE_EXHAUSTED with the memory that is needed and the memory that there is. `proven`:
// the search was exact, so nothing fits.
absl::Status NothingFits(const PlanProblem& problem, const PlanOptions& options, bool proven);

// Formats the value that the strategy minimises: "1.20 s", or "61.0 %" of memory.
std::string ObjectiveText(const PlanOptions& options, int64_t objective);
// Returns options with fewer steps, for a search that only explains.
PlanOptions Briefly(const PlanOptions& options);

}  // namespace trine::planner
