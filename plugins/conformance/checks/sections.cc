#include "plugins/conformance/checks/sections.h"

#include "absl/strings/str_cat.h"
#include "plugins/conformance/cases/oracle.h"

namespace trine::conformance {
namespace {

void NothingToCheck(Trial& trial, const KitOptions& options, const std::string& why) {
  const std::string text = absl::StrCat("nothing to check: ", why);
  options.allow_no_device ? trial.Skip(text) : trial.Fail(text);
}

// Reports that there is no device.
void RunNoDeviceCheck(Runner& runner, const KitOptions& options, const Survey& survey) {
  // Runs even if the filter leaves it out, because no other check can report this.
  runner.RunUnfiltered("kit/coverage", [&](Trial& trial) {
    if (!trial.ExpectOk(survey.opened, "nothing to check: open")) return;
    NothingToCheck(trial, options,
                   survey.unusable.empty()
                       ? "the plugin has no device"
                       : absl::StrCat("the plugin has no usable device: ", survey.unusable));
  });
}

// Fails if there is nothing to check, because a plugin must not conform by doing nothing.
void RunCoverageChecks(Bench& bench) {
  bench.Run("kit/coverage", [&](Trial& trial, Session& s) {
    Random random(bench.options().seed);
    std::string reason;
    for (const OpGroup& group : AllOpGroups()) {
      for (OpCase& op_case : group.make(random)) {
        if (Claim(trial, s, &op_case.graph, &reason) != TRINE_SUPPORT_NO) return;
      }
      trial.Alive();
    }
    NothingToCheck(trial, bench.options(),
                   absl::StrCat("the device claims no op at all; the last refusal: ", reason));
  });
}

}  // namespace

void Bench::Run(const std::string& name, const std::function<void(Trial&, Session&)>& body) {
  runner_.Run(device_ == 0 ? name : absl::StrCat(name, "@", device_), [&](Trial& trial) {
    Session* session = sessions_.Get(trial);
    if (session == nullptr) return;
    body(trial, *session);
    session->ReportBreaches(trial);
  });
}

void Bench::RunOnProbe(const std::string& name,
                       const std::function<void(Trial&, Session&, const OpCase&)>& body) {
  Run(name, [&](Trial& trial, Session& session) {
    const std::optional<OpCase> probe = Probe(trial, session);
    if (probe) body(trial, session, *probe);
  });
}

void Bench::RunOnPlan(
    const std::string& name,
    const std::function<void(Trial&, Session&, const OpCase&, DevicePlan&)>& body) {
  RunOnProbe(name, [&](Trial& trial, Session& session, const OpCase& probe) {
    const auto plan = DevicePlan::Create(trial, session, probe.graph, probe.images);
    if (plan != nullptr) body(trial, session, probe, *plan);
  });
}

std::optional<OpCase> Bench::Probe(Trial& trial, Session& session) {
  Random random(options_.seed);
  for (OpCase& op_case : ProbeCases(random)) {
    std::string reason;
    if (Claim(trial, session, &op_case.graph, &reason) != TRINE_SUPPORT_NO) {
      return std::move(op_case);
    }
  }
  trial.Skip("the device claims none of the ops the check could use");
  return std::nullopt;
}

uint32_t Claim(Trial& trial, Session& session, GraphSpec* graph, std::string* reason) {
  uint32_t weakest = TRINE_SUPPORT_EXACT;
  for (uint32_t numerics : {TRINE_NUMERICS_EXACT, TRINE_NUMERICS_FAST}) {
    graph->numerics = numerics;
    weakest = TRINE_SUPPORT_EXACT;
    for (uint32_t op = 0; op < graph->ops.size() && weakest != TRINE_SUPPORT_NO; ++op) {
      Answer answer;
      const trine_op_support support = QueryOp(trial, session, *graph, op, &answer);
      if (!answer.Ok()) {
        *reason = absl::StrCat("op_query: ", answer.Text());
        weakest = TRINE_SUPPORT_NO;
      } else if (support.support < TRINE_SUPPORT_NO || support.support > TRINE_SUPPORT_EXACT) {
        trial.Fail(absl::StrCat("op_query answered ", support.support, " for ", graph->Describe()));
        weakest = TRINE_SUPPORT_NO;
      } else {
        if (support.support == TRINE_SUPPORT_NO) *reason = support.reason;
        weakest = std::min(weakest, support.support);
      }
    }
    if (numerics == TRINE_NUMERICS_EXACT && weakest == TRINE_SUPPORT_EXACT) return weakest;
  }
  return std::min<uint32_t>(weakest, TRINE_SUPPORT_FAST);
}

void RunCase(Trial& trial, Session& session, const OpCase& op_case, const PlanOptions& plan_options,
             const RunOptions& run_options) {
  const GraphSpec& graph = op_case.graph;
  const auto where = [&](const std::vector<int64_t>& params) {
    std::string text =
        absl::StrCat(graph.Describe(), " with ", session.host().workers(), " workers, parameters");
    for (int64_t p : params) absl::StrAppend(&text, " ", p);
    return text;
  };
  const auto plan = DevicePlan::Create(trial, session, graph, op_case.images, plan_options);
  if (plan == nullptr) return;
  std::vector<std::vector<int64_t>> runs = {op_case.params};
  if (op_case.scales_down && !op_case.params.empty() && op_case.params[0] > 1) {
    runs.push_back(std::vector<int64_t>(op_case.params.size(), 1));
  }
  runs.push_back(op_case.params);  // again: earlier runs must have no effect
  for (const std::vector<int64_t>& params : runs) {
    Images got;
    if (!plan->Upload(trial, op_case.images)) return;
    if (!trial.ExpectOk(plan->Run(trial, params, run_options),
                        absl::StrCat("plan_run of ", where(params)))) {
      return;
    }
    if (!plan->Download(trial, &got)) return;
    const Expected expected = RunOracle(graph, params, op_case.images);
    const bool judged = graph.numerics == TRINE_NUMERICS_EXACT || !op_case.extreme;
    const std::string wrong = judged ? CompareResults(graph, params, expected, got)
                                     : CheckCanonical(graph, params, expected, got);
    if (!wrong.empty()) {
      trial.Fail(absl::StrCat(where(params), ": ", wrong));
      return;
    }
  }
}

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
