// Problems of any size in shapes that are usual, or hard to search: for tests and benchmarks.
#ifndef TRINE_DISPATCH_PLANNER_SHAPES_H_
#define TRINE_DISPATCH_PLANNER_SHAPES_H_

#include <vector>

#include "dispatch/planner_problem.h"

namespace trine {

struct PlanShape {
  const char* name;
  PlanProblem (*make)(int devices, int layers);  // at least two devices
};

const std::vector<PlanShape>& PlanShapes();

}  // namespace trine

#endif  // TRINE_DISPATCH_PLANNER_SHAPES_H_
