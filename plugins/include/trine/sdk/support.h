// Answers op_query and plan_query with one function of the plugin's own: `refusal(const Graph&,
// size_t op)` returns why an op that keeps its rules can't run, or "".
#ifndef TRINE_SDK_SUPPORT_H_
#define TRINE_SDK_SUPPORT_H_

#include <cstdio>
#include <string>

#include "trine/sdk/graph.h"
#include "trine/sdk/op_rules.h"
#include "trine/sdk/plan.h"
#include "trine/sdk/status.h"

namespace trine::sdk {

// Copies a graph and checks that all of its ops can run; plan_query and plan_create need that.
// `support` is the most that the device offers: TRINE_SUPPORT_EXACT or TRINE_SUPPORT_FAST.
template <class Refusal>
trine_status AcceptGraph(const trine_graph* given, uint32_t support, Refusal refusal, Graph* out,
                         trine_error* err) {
  const trine_status status = CopyGraph(given, out, err);
  if (status != TRINE_OK) return status;
  if (out->numerics == TRINE_NUMERICS_EXACT && support != TRINE_SUPPORT_EXACT) {
    return Fail(err, TRINE_UNIMPLEMENTED, "this device does not keep the exactness contract");
  }
  for (size_t i = 0; i < out->ops.size(); ++i) {
    std::string why = CheckOp(*out, i);
    if (why.empty()) why = refusal(*out, i);
    if (!why.empty()) {
      return Fail(err, TRINE_UNIMPLEMENTED, "op " + std::to_string(i) + ": " + why);
    }
  }
  return TRINE_OK;
}

// Implements op_query.
template <class Refusal>
trine_status AnswerOpQuery(const trine_graph* given, uint32_t op, uint32_t support, Refusal refusal,
                           trine_op_support* out, trine_error* err) {
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
    answer.support = why.empty() ? support : static_cast<uint32_t>(TRINE_SUPPORT_NO);
    std::snprintf(answer.reason, sizeof(answer.reason), "%s", why.c_str());
    WriteOut(out, answer);
    return TRINE_OK;
  });
}

// Implements plan_query for plans whose scratch holds the TEMP slots and nothing else.
template <class Refusal>
trine_status AnswerPlanQuery(const trine_graph* given, uint32_t support, Refusal refusal,
                             trine_plan_info* out, trine_error* err) {
  return Guard(err, [&]() -> trine_status {
    Graph graph;
    const trine_status status = AcceptGraph(given, support, refusal, &graph, err);
    if (status != TRINE_OK) return status;
    trine_plan_info info{};
    info.scratch_alignment = kScratchAlignment;
    info.scratch_bytes = LayOutScratch(graph, nullptr);
    WriteOut(out, info);
    return TRINE_OK;
  });
}

}  // namespace trine::sdk

#endif  // TRINE_SDK_SUPPORT_H_
