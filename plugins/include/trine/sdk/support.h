// Answers op_query and plan_query with functions of the plugin's own:
//   refusal(const Graph&, size_t op)  returns why an op that keeps its rules can't run, or "";
//   support                           TRINE_SUPPORT_EXACT or TRINE_SUPPORT_FAST, for all ops of the
//                                     device or, as support(const Graph&, size_t op), for one op;
//   extra(const Graph&)               returns the bytes of scratch that a plan needs besides its
//                                     TEMP slots; PlanPlaces::extra() is where a plan finds them.
#ifndef TRINE_SDK_SUPPORT_H_
#define TRINE_SDK_SUPPORT_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

#include "trine/sdk/graph.h"
#include "trine/sdk/op_rules.h"
#include "trine/sdk/plan.h"
#include "trine/sdk/status.h"

namespace trine::sdk {

// Returns the support of an op that the plugin does not refuse.
template <class Support>
uint32_t SupportOfOp(const Support& support, const Graph& graph, size_t op) {
  if constexpr (std::is_invocable_v<const Support&, const Graph&, size_t>) {
    return support(graph, op);
  } else {
    return support;
  }
}

// Copies a graph and checks that all of its ops can run, as exactly as it asks; plan_query and
// plan_create need that.
template <class Support, class Refusal>
trine_status AcceptGraph(const trine_graph* given, const Support& support, Refusal refusal,
                         Graph* out, trine_error* err) {
  const trine_status status = CopyGraph(given, out, err);
  if (status != TRINE_OK) return status;
  const bool exact = out->numerics == TRINE_NUMERICS_EXACT;
  for (size_t i = 0; i < out->ops.size(); ++i) {
    std::string why = CheckOp(*out, i);
    if (why.empty()) why = refusal(*out, i);
    if (why.empty() && exact && SupportOfOp(support, *out, i) != TRINE_SUPPORT_EXACT) {
      why = "it does not keep the exactness contract here";
    }
    if (!why.empty()) {
      return Fail(err, TRINE_UNIMPLEMENTED, "op " + std::to_string(i) + ": " + why);
    }
  }
  return TRINE_OK;
}

// Implements op_query.
template <class Support, class Refusal>
trine_status AnswerOpQuery(const trine_graph* given, uint32_t op, const Support& support,
                           Refusal refusal, trine_op_support* out, trine_error* err) {
  return Guard(err, [&]() -> trine_status {
    Graph graph;
    const trine_status status = CopyGraph(given, &graph, err);
    if (status != TRINE_OK) return status;
    if (op >= graph.ops.size()) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "the graph has no such op");
    }
    std::string why = CheckOp(graph, op);
    if (why.empty()) why = refusal(graph, op);
    trine_op_support answer{};
    answer.support =
        why.empty() ? SupportOfOp(support, graph, op) : static_cast<uint32_t>(TRINE_SUPPORT_NO);
    std::snprintf(answer.reason, sizeof(answer.reason), "%s", why.c_str());
    WriteOut(out, answer);
    return TRINE_OK;
  });
}

// Implements plan_query for plans whose scratch holds the TEMP slots and `extra` bytes.
template <class Support, class Refusal, class Extra>
trine_status AnswerPlanQuery(const trine_graph* given, const Support& support, Refusal refusal,
                             Extra extra, trine_plan_info* out, trine_error* err) {
  return Guard(err, [&]() -> trine_status {
    Graph graph;
    const trine_status status = AcceptGraph(given, support, refusal, &graph, err);
    if (status != TRINE_OK) return status;
    trine_plan_info info{};
    info.scratch_alignment = kScratchAlignment;
    info.scratch_bytes = LayOutScratch(graph, nullptr) + extra(graph);
    WriteOut(out, info);
    return TRINE_OK;
  });
}

// Implements plan_query for plans whose scratch holds the TEMP slots and nothing else.
template <class Support, class Refusal>
trine_status AnswerPlanQuery(const trine_graph* given, const Support& support, Refusal refusal,
                             trine_plan_info* out, trine_error* err) {
  const auto nothing = [](const Graph&) { return uint64_t{0}; };
  return AnswerPlanQuery(given, support, refusal, nothing, out, err);
}

}  // namespace trine::sdk

#endif  // TRINE_SDK_SUPPORT_H_
