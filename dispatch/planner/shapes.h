// Makes problems for tests and benchmarks: of any size, in shapes that are usual or hard to search.
#pragma once

#include <cstdint>

#include "dispatch/planner/problem.h"

namespace trine {

// The settings of a shape. Device 0 is the CPU, device 1 the iGPU on the CPU's pool and domain; the
// rest are dGPUs.
struct PlanShape {
  const char* name;
  double cpu_speed;  // layers per time; the slowest dGPU has dgpu_speed
  double igpu_speed;
  double dgpu_speed;
  double dgpu_spread;   // how much faster each dGPU is than the one before it
  double dgpu_share;    // part of the model's bytes that all dGPUs together hold
  double pool_share;    // part of the model's bytes that the pool of CPU and iGPU holds
  double single_limit;  // part of the pool that CPU and iGPU may have each
  int64_t transfer_ns;
  bool uneven = false;     // layers of random sizes and times
  bool all_share = false;  // pairs of dGPUs share pools and domains too

  PlanProblem make(int devices, int layers) const;  // at least two devices
};

inline constexpr PlanShape kPlanShapes[] = {
    {"usual", 1, 1.5, 10, 1, 0.6, 0.7, 1, 20000},
    {"usual_uneven", 1, 1.5, 10, 1.1, 0.6, 0.7, 1, 20000, true},
    // CPU and iGPU are the fastest, and each could use up the pool: how they share it decides.
    {"tight_pool", 12, 13, 10, 1, 1.2, 0.5, 0.8, 20000},
    {"tight_pool_uneven", 12, 12, 10, 1, 1.2, 0.5, 0.8, 20000, true},
    // All devices are alike, and the model hardly fits.
    {"alike", 10, 10, 10, 1, 0.55, 0.55, 0.7, 0},
    {"alike_uneven", 10, 10, 10, 1, 0.6, 0.55, 0.7, 20000, true},
    // CPU and iGPU are much faster than the rest and about as fast as each other: many ways to
    // share the pool are within a part of a layer of the best.
    {"near_ties", 14.6, 15.7, 1.7, 1, 0.9, 0.62, 0.58, 20000},
    // Every device shares with another.
    {"pairs_uneven", 10, 10, 10, 1, 0.9, 0.3, 0.7, 20000, true, true},
};

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
