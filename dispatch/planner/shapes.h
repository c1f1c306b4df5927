// Makes problems for tests and benchmarks: of any size, in shapes that are usual or hard to search.
#pragma once

#include <vector>

#include "dispatch/planner/planner.h"
#include "dispatch/planner/problem.h"

namespace trine {

struct PlanShape {
  const char* name;
  PlanProblem (*make)(int devices, int layers);  // at least two devices
};

const std::vector<PlanShape>& PlanShapes();

// One of the goals that a placement can be searched for.
struct PlanGoal {
  const char* name;
  Strategy strategy;
  Optimize optimize;

  // Returns the options for this goal, without reasons.
  PlanOptions Options() const {
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
