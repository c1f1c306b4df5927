// Checks how much work the searches do at the size that they are meant for, counted in steps. A
// step is a few nanoseconds (trine-planner-bench measures times).
#include <string>

#include "absl/strings/str_cat.h"
#include "dispatch/planner/planner.h"
#include "dispatch/planner/shapes.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

// Four pools and four domains of two devices each are too much for the searches.
bool SharesEverything(const PlanShape& shape) { return std::string(shape.name) == "pairs_uneven"; }

TEST(PlannerSizeTest, EightDevicesAndTwoHundredLayersAreSearchedToTheEnd) {
  for (const PlanShape& shape : kPlanShapes) {
    if (SharesEverything(shape)) continue;
    const PlanProblem problem = shape.make(8, 200);
    for (const PlanGoal& goal : kPlanGoals) {
      SCOPED_TRACE(absl::StrCat(goal.name, " ", shape.name));
      const auto placement = FindPlacement(problem, goal.Options());
      ASSERT_TRUE(placement.ok()) << placement.status();
      EXPECT_TRUE(placement->exact);
      EXPECT_TRUE(placement->violations.empty());
      // A step here takes up to 20 ns, so this is less than 100 ms.
      EXPECT_LT(placement->search_steps, 3000000u);
    }
  }
}

TEST(PlannerSizeTest, ASearchThatIsTooLongStopsWithAPlacementAndSaysSo) {
  for (const PlanShape& shape : kPlanShapes) {
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
      // Allows for the steps that are done once, and for one label too many.
      EXPECT_LT(placement->search_steps, options.max_steps + 8000000);
      if (!placement->exact) continue;
      ASSERT_TRUE(best.ok()) << best.status();
      EXPECT_EQ(placement->request_ns, best->request_ns);
    }
  }
}

}  // namespace
}  // namespace trine
