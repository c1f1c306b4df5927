// Measures in rounds. Each round measures everything once, so that a disturbance of the machine
// spoils one round of many things and not all rounds of one thing.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace trine {

// What several measurements of one thing say together.
struct RepeatedCost {
  double median = 0;
  double spread = 0;  // the width of the middle half of the values, over the median
};

// Returns zeros if there are no values.
RepeatedCost Summarise(std::vector<double> values);

// Measures one thing once, in nanoseconds or in a unit of the caller's.
using MeasureOnce = std::function<absl::StatusOr<double>()>;

// What each thing took, in the order of the things, for each round.
using Rounds = std::vector<std::vector<double>>;

// Measures all things once in each round. Ends with the first error.
absl::StatusOr<Rounds> MeasureInRounds(int rounds, const std::vector<MeasureOnce>& things);

// Computes a cost from each round by itself, and summarises these costs. So a change of the
// machine's speed between two rounds does not get into a difference of two times.
RepeatedCost SummariseRounds(const Rounds& rounds,
                             const std::function<double(const std::vector<double>&)>& cost);

// Tells nanoseconds since some fixed moment.
using NanosecondClock = std::function<double()>;
double SteadyNanoseconds();  // the clock of the machine

// Runs work again and again until `budget_ns` have passed, and returns the median time of a run.
// The first run is not counted, because it finds the caches as other work has left them. Where the
// first run takes longer than the budget, the caches hardly matter, and it is the only run.
absl::StatusOr<double> TimeRound(const std::function<absl::Status()>& run,
                                 const NanosecondClock& clock, double budget_ns);

}  // namespace trine
