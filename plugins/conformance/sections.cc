#include "plugins/conformance/sections.h"

#include "absl/strings/str_cat.h"
#include "plugins/conformance/oracle.h"

namespace trine::conformance {

void Bench::Run(const std::string& name, const std::function<void(Trial&, Session&)>& body) {
  runner_.Run(device_ == 0 ? name : absl::StrCat(name, "@", device_), [&](Trial& trial) {
    Session* session = sessions_.Get(trial);
    if (session == nullptr) return;
    body(trial, *session);
    session->ReportBreaches(trial);
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
  runs.push_back(op_case.params);  // again: nothing of the earlier runs may be left
  for (const std::vector<int64_t>& params : runs) {
    Images expected = op_case.images, got;
    RunOracle(graph, params, &expected);
    if (!plan->Upload(trial, op_case.images)) return;
    if (!trial.ExpectOk(plan->Run(trial, params, run_options),
                        absl::StrCat("plan_run of ", where(params)))) {
      return;
    }
    if (!plan->Download(trial, &got)) return;
    const std::string wrong =
        CompareImages(graph, params, expected, got, graph.numerics == TRINE_NUMERICS_EXACT);
    if (!wrong.empty()) {
      trial.Fail(absl::StrCat(where(params), ": ", wrong));
      return;
    }
  }
}

}  // namespace trine::conformance
