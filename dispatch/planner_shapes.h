// Problems of any size in shapes that are usual, or hard to search: for tests and benchmarks.
#ifndef TRINE_DISPATCH_PLANNER_SHAPES_H_
#define TRINE_DISPATCH_PLANNER_SHAPES_H_

#include <vector>

#include "dispatch/planner.h"
#include "dispatch/planner_problem.h"

namespace trine {

struct PlanShape {
  const char* name;
  PlanProblem (*make)(int devices, int layers);  // at least two devices
};

const std::vector<PlanShape>& PlanShapes();

// Everything that a placement can be sought for.
struct PlanGoal {
  const char* name;
  Strategy strategy;
  Optimize optimize;

  PlanOptions Options() const {  // without reasons
    PlanOptions options;
    options.strategy = strategy;
    options.optimize = optimize;
    options.explain = false;
    return options;
  }
};

inline constexpr PlanGoal kPlanGoals[] = {
    {"latency", Strategy::kAuto, Optimize::kLatency},
    {"throughput", Strategy::kAuto, Optimize::kThroughput},
    {"balanced", Strategy::kBalanced, Optimize::kLatency},
    {"memory", Strategy::kMemory, Optimize::kLatency},
};

}  // namespace trine

#endif  // TRINE_DISPATCH_PLANNER_SHAPES_H_
