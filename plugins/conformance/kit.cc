#include "plugins/conformance/kit.h"

#include "plugins/conformance/sections.h"

namespace trine::conformance {

void RunKit(trine_plugin_query_fn query, const KitOptions& options, Sink& sink) {
  Runner runner(options, sink);
  const std::optional<trine_plugin> table = RunLoadChecks(runner, query);
  if (!table) return;
  const Survey survey = RunLifeCycleChecks(runner, *table, options);
  if (survey.usable.empty() && !runner.failed("life-cycle/open")) {
    RunNoDeviceCheck(runner, options, survey);
  }
  for (uint32_t device : survey.usable) {
    Bench bench(runner, *table, options, device);
    RunCoverageChecks(bench);
    RunMemoryChecks(bench);
    RunCopyChecks(bench);
    RunTimelineChecks(bench);
    RunSubmissionChecks(bench);
    RunAbiChecks(bench);
    RunGraphChecks(bench);
    RunRefusalChecks(bench);
    RunOpChecks(bench);
    RunLayoutChecks(bench);
    RunFailureChecks(bench);
    RunCycleChecks(bench);
  }
}

}  // namespace trine::conformance
