// refusals: every answer of op_query, and plans that keep to it.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/sections.h"

namespace trine::conformance {
namespace {

struct Tally {
  int exact = 0, fast = 0, no = 0;
};

// NO carries a reason, a time is a time, and the out-struct is filled no further than asked.
uint32_t CheckAnswer(Trial& trial, Session& s, const GraphSpec& graph) {
  const PackedGraph packed(graph);
  trine_op_support support{};
  std::memset(&support, 0xA5, sizeof(support));
  support.struct_size = sizeof(support);
  const Answer answer = trial.Call("op_query", [&](trine_error* err) {
    return s.table().op_query(s.device(), packed.get(), 0, nullptr, &support, err);
  });
  const std::string what = graph.Describe();
  if (!answer.Ok()) {
    trial.Fail(absl::StrCat("op_query for ", what, " is an error, not an answer: ", answer.Text()));
    return TRINE_SUPPORT_NO;
  }
  if (!trial.Expect(support.support >= TRINE_SUPPORT_NO && support.support <= TRINE_SUPPORT_EXACT,
                    absl::StrCat("op_query answered ", support.support, " for ", what))) {
    return TRINE_SUPPORT_NO;
  }
  trial.Expect(std::isfinite(support.estimated_ns) && support.estimated_ns >= 0,
               absl::StrCat("op_query estimates ", support.estimated_ns, " ns for ", what));
  if (support.support == TRINE_SUPPORT_NO) {
    const bool ended = std::memchr(support.reason, 0, sizeof(support.reason)) != nullptr;
    trial.Expect(ended && support.reason[0] != '\0',
                 absl::StrCat("op_query refuses without a reason: ", what));
  }
  return support.support;
}

// Plans for what was refused are refused, those for what was claimed are made.
void CheckPlan(Trial& trial, Session& s, const OpCase& op_case, uint32_t support) {
  const bool claimed =
      support == TRINE_SUPPORT_EXACT ||
      (support == TRINE_SUPPORT_FAST && op_case.graph.numerics == TRINE_NUMERICS_FAST);
  Answer answer;
  DevicePlan::TryCreate(trial, s, op_case.graph, op_case.images, {}, &answer);
  const std::string what = op_case.graph.Describe();
  if (claimed) {
    trial.ExpectOk(answer, absl::StrCat("op_query claims ", what, ", but plan_create refuses it"));
  } else {
    trial.ExpectRefused(answer, absl::StrCat("a plan for the refused op ", what),
                        {TRINE_UNIMPLEMENTED});
  }
}

}  // namespace

void RunRefusalChecks(Bench& bench) {
  bench.Run("refusals/every-op", [&](Trial& trial, Session& s) {
    Random random(bench.options().seed);
    Tally tally;
    for (const OpGroup& group : AllOpGroups()) {
      std::vector<OpCase> cases = group.make(random);
      // The case in the middle is neither the smallest nor an edge.
      OpCase& op_case = cases[cases.size() / 2];
      for (uint32_t numerics : {TRINE_NUMERICS_EXACT, TRINE_NUMERICS_FAST}) {
        op_case.graph.numerics = numerics;
        const uint32_t support = CheckAnswer(trial, s, op_case.graph);
        CheckPlan(trial, s, op_case, support);
        if (numerics == TRINE_NUMERICS_FAST) continue;
        ++(support == TRINE_SUPPORT_EXACT  ? tally.exact
           : support == TRINE_SUPPORT_FAST ? tally.fast
                                           : tally.no);
      }
      trial.Alive();
    }
    trial.Note(absl::StrCat(tally.exact, " kinds of op exact, ", tally.fast, " fast, ", tally.no,
                            " refused"));
  });
  bench.Run("refusals/short-answer", [&](Trial& trial, Session& s) {
    const std::optional<OpCase> probe = bench.Probe(trial, s);
    if (!probe) return;
    GraphSpec graph = probe->graph;
    graph.ops[0].kind = 9999;  // a refusal, so that there is a reason to write
    const PackedGraph packed(graph);
    for (uint32_t size : {8u, 16u, 20u}) {
      trine_op_support support;
      std::memset(&support, 0xA5, sizeof(support));
      support.struct_size = size;
      trial.Call("op_query", [&](trine_error* err) {
        return s.table().op_query(s.device(), packed.get(), 0, nullptr, &support, err);
      });
      const auto* bytes = reinterpret_cast<const unsigned char*>(&support);
      for (size_t i = size; i < sizeof(support); ++i) {
        if (bytes[i] == 0xA5) continue;
        trial.Fail(
            absl::StrCat("op_query wrote byte ", i, " of a struct whose struct_size is ", size));
        return;
      }
    }
  });
}

}  // namespace trine::conformance
