// How much work the searches are at the size they are meant for, counted in steps: a step is a few
// nanoseconds (trine-planner-bench has the times).
#include <string>

#include "absl/strings/str_cat.h"
#include "dispatch/planner.h"
#include "dispatch/planner_shapes.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

// Four pools and four domains of two devices each are beyond it.
bool SharesEverything(const PlanShape& shape) { return std::string(shape.name) == "pairs_uneven"; }

TEST(PlannerSizeTest, EightDevicesAndTwoHundredLayersAreSearchedToTheEnd) {
  for (const PlanShape& shape : PlanShapes()) {
    if (SharesEverything(shape)) continue;
    const PlanProblem problem = shape.make(8, 200);
    for (const PlanGoal& goal : kPlanGoals) {
      SCOPED_TRACE(absl::StrCat(goal.name, " ", shape.name));
      const auto placement = FindPlacement(problem, goal.Options());
      ASSERT_TRUE(placement.ok()) << placement.status();
      EXPECT_TRUE(placement->exact);
      EXPECT_TRUE(placement->violations.empty());
      // Steps of these take up to 13 ns: it is less than 50 ms.
      EXPECT_LT(placement->search_steps, 3000000u);
    }
  }
}

TEST(PlannerSizeTest, ASearchThatIsTooLongStopsWithAPlacementAndSaysSo) {
  for (const PlanShape& shape : PlanShapes()) {
    const PlanProblem problem = shape.make(8, 200);
    for (const PlanGoal& goal : kPlanGoals) {
      SCOPED_TRACE(absl::StrCat(goal.name, " ", shape.name));
      PlanOptions options = goal.Options();
      const uint64_t enough = SharesEverything(shape) ? 3000000 : options.max_steps;
      options.max_steps = enough;
      const auto best = FindPlacement(problem, options);
      options.max_steps = 100000;
      const auto placement = FindPlacement(problem, options);
      ASSERT_TRUE(placement.ok()) << placement.status();
      EXPECT_TRUE(placement->violations.empty());
      // What is done once, and one label more than there should be.
      EXPECT_LT(placement->search_steps, options.max_steps + 8000000);
      if (!placement->exact) continue;
      ASSERT_TRUE(best.ok()) << best.status();
      EXPECT_EQ(placement->request_ns, best->request_ns);
    }
  }
}

}  // namespace
}  // namespace trine
