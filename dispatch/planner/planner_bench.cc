// Measures how long it takes to find a placement for eight devices and two hundred layers, the size
// that the searches are meant for, in shapes from the usual to the awkward. A tool, not a test.
//
//   trine-planner-bench --benchmark_filter=latency
#include <string>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "dispatch/planner/planner.h"
#include "dispatch/planner/shapes.h"

namespace trine {
namespace {

void BM_Plan(benchmark::State& state, const PlanGoal& goal, const PlanShape& shape, bool explain) {
  const PlanProblem problem =
      shape.make(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  PlanOptions options = goal.Options();
  options.explain = explain;
  for (auto _ : state) {
    const auto placement = FindPlacement(problem, options);
    if (!placement.ok()) {
      return state.SkipWithError(std::string(placement.status().message()).c_str());
    }
    state.counters["steps"] = static_cast<double>(placement->search_steps);
    state.counters["segments"] = static_cast<double>(placement->segments.size());
    state.counters["exact"] = placement->exact ? 1 : 0;
  }
}

void RegisterAll() {
  for (const PlanGoal& goal : kPlanGoals) {
    for (const PlanShape& shape : kPlanShapes) {
      for (const bool explain : {false, true}) {
        const std::string name = absl::StrCat(goal.name, "/", shape.name, explain ? "/why" : "");
        auto* bench = benchmark::RegisterBenchmark(
            name.c_str(),
            [&goal, &shape, explain](benchmark::State& s) { BM_Plan(s, goal, shape, explain); });
        bench->ArgNames({"devices", "layers"})->Unit(benchmark::kMillisecond);
        bench->Args({3, 32});
        bench->Args({8, 200});
      }
    }
  }
}

}  // namespace
}  // namespace trine

int main(int argc, char** argv) {
  trine::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
