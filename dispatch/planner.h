// Decides which layers go on which device. Pure: numbers in, a placement with reasons out; the same
// numbers give the same placement. docs/placement.md says what is minimised and how.
#ifndef TRINE_DISPATCH_PLANNER_H_
#define TRINE_DISPATCH_PLANNER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "dispatch/placement.h"
#include "dispatch/planner_problem.h"

namespace trine {

enum class Strategy {
  kAuto,      // least predicted time, as PlanOptions::optimize counts it
  kMemory,    // every GPU filled to the same part of its memory; the CPU has what they can't hold
  kBalanced,  // the longest stage as short as possible
};

enum class Optimize {
  kLatency,     // the nominal request, alone
  kThroughput,  // nominal requests per second, with enough of them in flight
};

struct PlanOptions {
  Strategy strategy = Strategy::kAuto;
  Optimize optimize = Optimize::kLatency;
  NominalRequest request;
  bool split_ends = true;  // the embedding and the head may be on devices without a layer
  bool explain = true;     // fill in bounds, changes and reasons, which takes more searches
  // Beyond so many the search stops with the best it has, and Placement::exact is false.
  uint64_t max_steps = 20000000;
};

// The placement, with the reasons where they were asked for. RESOURCE_EXHAUSTED, with what is
// needed and what there is, where nothing fits; INVALID_ARGUMENT for a problem that makes no sense.
absl::StatusOr<Placement> FindPlacement(const PlanProblem& problem, const PlanOptions& options);

}  // namespace trine

#endif  // TRINE_DISPATCH_PLANNER_H_
