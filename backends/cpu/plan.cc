#include "backends/cpu/plan.h"

#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/op_run.h"

struct trine_plan {
  trine_device* device;
  trine::sdk::Graph graph;
  trine::sdk::PlanStorage storage;
  // One entry per op, refilled by each run: nothing is allocated in a steady state.
  std::vector<trine::cpu::Operands> operands;
};

namespace trine::cpu {
namespace {

using sdk::Fail;

reference::View ToReference(const sdk::View& view) {
  reference::View out;
  out.data = view.data;
  for (size_t i = 0; i < view.dims.size(); ++i) {
    out.dims[i] = view.dims[i];
    out.strides[i] = view.strides[i];
  }
  out.type = static_cast<quant::Type>(view.dtype);
  return out;
}

void Resolve(trine_plan* plan, const trine_run_args& args) {
  const uint32_t* alternates = args.n_alternates != 0 ? args.alternates : nullptr;
  const auto view = [&](uint32_t t) {
    return ToReference(plan->storage.ViewOf(plan->graph, t, args.params, alternates));
  };
  for (size_t i = 0; i < plan->graph.ops.size(); ++i) {
    const sdk::Op& op = plan->graph.ops[i];
    Operands& operands = plan->operands[i];
    for (size_t j = 0; j < op.in.size(); ++j) {
      if (operands.has[j]) operands.in[j] = view(op.in[j]);
    }
    for (size_t j = 0; j < op.out.size(); ++j) operands.out[j] = view(op.out[j]);
  }
}

void Work(void* arg, uint32_t worker, uint32_t workers) {
  const auto& plan = *static_cast<const trine_plan*>(arg);
  const trine_host& host = *plan.device->backend->host;
  for (size_t i = 0; i < plan.graph.ops.size(); ++i) {
    if (i != 0) host.barrier(host.self);
    RunShare(plan.graph.ops[i], plan.operands[i], worker, workers);
  }
}

}  // namespace

trine_status OpQuery(trine_device*, const trine_graph* graph, uint32_t op, const int64_t*,
                     trine_op_support* out, trine_error* err) {
  return sdk::AnswerOpQuery(graph, op, TRINE_SUPPORT_EXACT, WhyNotSupported, out, err);
}

trine_status PlanQuery(trine_device*, const trine_graph* graph, trine_plan_info* out,
                       trine_error* err) {
  return sdk::AnswerPlanQuery(graph, TRINE_SUPPORT_EXACT, WhyNotSupported, out, err);
}

trine_status PlanCreate(trine_device* device, const trine_plan_desc* given, trine_plan** out,
                        trine_error* err) {
  return sdk::Guard(err, [&]() -> trine_status {
    const trine_plan_desc desc = sdk::ReadIn(given);
    auto plan = std::make_unique<trine_plan>();
    plan->device = device;
    trine_status status =
        sdk::AcceptGraph(desc.graph, TRINE_SUPPORT_EXACT, WhyNotSupported, &plan->graph, err);
    if (status != TRINE_OK) return status;
    status = plan->storage.Bind(plan->graph, desc, Memory::SpanData, err);
    if (status != TRINE_OK) return status;
    for (const sdk::Op& op : plan->graph.ops) {
      Operands operands;
      operands.in.resize(op.in.size());
      for (size_t i = 0; i < op.in.size(); ++i) operands.has.push_back(op.HasInput(i));
      operands.out.resize(op.out.size());
      plan->operands.push_back(std::move(operands));
    }
    *out = plan.release();
    return TRINE_OK;
  });
}

trine_status PlanRun(trine_plan* plan, const trine_run_args* given, trine_error* err) {
  const trine_run_args args = sdk::ReadIn(given);
  const auto timeline_of = [](trine_timeline* t) -> sdk::Timeline& { return *t; };
  return sdk::Guard(err, [&]() -> trine_status {
    const trine_status status = sdk::CheckRun(plan->graph, args, err);
    if (status != TRINE_OK) return status;
    return sdk::SubmitSynchronously(args.sync, timeline_of, err, [&](trine_error* own) {
      Resolve(plan, args);
      const trine_host& host = *plan->device->backend->host;
      const trine_status ran = host.parallel_run(host.self, Work, plan);
      return ran == TRINE_OK ? ran : Fail(own, ran, "the host's thread team did not run the plan");
    });
  });
}

void PlanDestroy(trine_plan* plan) { delete plan; }

}  // namespace trine::cpu
