#include "backends/cpu/plan.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/attention_run.h"
#include "backends/cpu/op_run.h"
#include "backends/cpu/schedule.h"

namespace trine::cpu {
namespace {

// What one step does: the function with its operands, which point into the plan's views.
struct StepCall {
  OpFunction function = nullptr;
  OpCall call;
  bool barrier = false;
};

}  // namespace
}  // namespace trine::cpu

struct trine_plan {
  trine_device* device;
  trine::sdk::Graph graph;
  trine::sdk::PlanStorage storage;
  std::vector<trine::cpu::StepCall> steps;
  std::vector<trine::reference::View> views;  // by tensor
  std::vector<uint32_t> changing;             // tensors that a run's parameters or alternates move
  trine::cpu::AttentionRoom attention_room;
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

bool Changes(const sdk::Graph& graph, const trine_tensor& t) {
  return graph.slots[t.slot].alternates > 1 ||
         std::any_of(t.dims, t.dims + t.rank, [](int64_t dim) { return dim < 0; });
}

// A graph may hold tensors of types only a newer host knows, for ops it asks elsewhere about.
bool IsKnown(const trine_tensor& t) { return sdk::FindDtype(t.dtype) != nullptr; }

void ResolveViews(trine_plan* plan) {
  const std::vector<int64_t> max = plan->graph.MaxParams();
  plan->views.resize(plan->graph.tensors.size());
  for (uint32_t t = 0; t < plan->views.size(); ++t) {
    const trine_tensor& tensor = plan->graph.tensors[t];
    if (!IsKnown(tensor)) continue;
    plan->views[t] = ToReference(plan->storage.ViewOf(plan->graph, t, max.data(), nullptr));
    if (Changes(plan->graph, tensor)) plan->changing.push_back(t);
  }
}

StepCall MakeCall(trine_plan& plan, const Step& step, std::byte* activations) {
  const sdk::Op& op = plan.graph.ops[step.op];
  StepCall made;
  made.barrier = step.barrier;
  made.function = step.kind == Step::Kind::kQuantize ? QuantizeShare : FindOpFunction(op.kind);
  made.call.op = &op;
  made.call.kernels = plan.device->backend->choice.level->table;
  for (size_t i = 0; i < op.in.size(); ++i) {
    if (op.HasInput(i)) made.call.in[i] = &plan.views[op.in[i]];
  }
  for (size_t i = 0; i < op.out.size(); ++i) made.call.out[i] = &plan.views[op.out[i]];
  if (plan.attention_room.partials != nullptr) made.call.room = &plan.attention_room;
  if (step.activations != kNoActivations) {
    made.call.chunks =
        reinterpret_cast<cpu_kernels::ActivationChunk*>(activations + step.activations);
  }
  return made;
}

// The scratch holds the TEMP slots, then the quantised activations, then attention's partial
// results.
trine_status BindSteps(trine_plan* plan, const trine_plan_desc& desc, trine_error* err) {
  Schedule schedule;
  const std::string why = MakeSchedule(plan->graph, &schedule);
  if (!why.empty()) return Fail(err, TRINE_UNIMPLEMENTED, why);
  const uint64_t temp_bytes = sdk::LayOutScratch(plan->graph, nullptr);
  std::byte* scratch = schedule.scratch_bytes == 0 ? nullptr : Memory::SpanData(desc.scratch);
  if (schedule.scratch_bytes != 0 &&
      (scratch == nullptr || desc.scratch.bytes < temp_bytes + schedule.scratch_bytes)) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "the scratch is missing or too small");
  }
  if (schedule.attention.partial_floats != 0) {
    AttentionRoom& room = plan->attention_room;
    room.partials = reinterpret_cast<float*>(scratch + temp_bytes + schedule.partials);
    room.partial_floats = schedule.attention.partial_floats;
    room.done = std::vector<std::atomic<uint32_t>>(static_cast<size_t>(schedule.attention.pairs));
  }
  for (const Step& step : schedule.steps) {
    plan->steps.push_back(
        MakeCall(*plan, step, scratch == nullptr ? nullptr : scratch + temp_bytes));
  }
  return TRINE_OK;
}

void ResolveRun(trine_plan* plan, const trine_run_args& args) {
  const uint32_t* alternates = args.n_alternates != 0 ? args.alternates : nullptr;
  for (uint32_t t : plan->changing) {
    plan->views[t] = ToReference(plan->storage.ViewOf(plan->graph, t, args.params, alternates));
  }
}

void Work(void* arg, uint32_t worker, uint32_t workers) {
  const auto& plan = *static_cast<const trine_plan*>(arg);
  const trine_host& host = *plan.device->backend->host;
  for (const StepCall& step : plan.steps) {
    if (step.barrier) host.barrier(host.self);
    step.function(step.call, {worker, workers});
  }
}

}  // namespace

trine_status OpQuery(trine_device* device, const trine_graph* graph, uint32_t op, const int64_t*,
                     trine_op_support* out, trine_error* err) {
  return sdk::AnswerOpQuery(graph, op, device->backend->Support(), WhyNotSupported, out, err);
}

trine_status PlanQuery(trine_device* device, const trine_graph* given, trine_plan_info* out,
                       trine_error* err) {
  return sdk::Guard(err, [&]() -> trine_status {
    sdk::Graph graph;
    const trine_status status =
        sdk::AcceptGraph(given, device->backend->Support(), WhyNotSupported, &graph, err);
    if (status != TRINE_OK) return status;
    Schedule schedule;
    const std::string why = MakeSchedule(graph, &schedule);
    if (!why.empty()) return Fail(err, TRINE_UNIMPLEMENTED, why);
    trine_plan_info info{};
    info.scratch_alignment = sdk::kScratchAlignment;
    info.scratch_bytes = sdk::LayOutScratch(graph, nullptr) + schedule.scratch_bytes;
    sdk::WriteOut(out, info);
    return TRINE_OK;
  });
}

trine_status PlanCreate(trine_device* device, const trine_plan_desc* given, trine_plan** out,
                        trine_error* err) {
  return sdk::Guard(err, [&]() -> trine_status {
    const trine_plan_desc desc = sdk::ReadIn(given);
    auto plan = std::make_unique<trine_plan>();
    plan->device = device;
    trine_status status = sdk::AcceptGraph(desc.graph, device->backend->Support(), WhyNotSupported,
                                           &plan->graph, err);
    if (status != TRINE_OK) return status;
    status = plan->storage.Bind(plan->graph, desc, Memory::SpanData, err);
    if (status != TRINE_OK) return status;
    ResolveViews(plan.get());
    status = BindSteps(plan.get(), desc, err);
    if (status != TRINE_OK) return status;
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
      ResolveRun(plan, args);
      const trine_host& host = *plan->device->backend->host;
      const trine_status ran = host.parallel_run(host.self, Work, plan);
      return ran == TRINE_OK ? ran : Fail(own, ran, "the host's thread team did not run the plan");
    });
  });
}

void PlanDestroy(trine_plan* plan) { delete plan; }

}  // namespace trine::cpu
