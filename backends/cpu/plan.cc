#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/attention_run.h"
#include "backends/cpu/device.h"
#include "backends/cpu/op_run.h"
#include "backends/cpu/schedule.h"
#include "backends/cpu/team_run.h"

struct trine_plan {
  trine_device* device;
  trine::sdk::Graph graph;
  trine::sdk::PlanStorage storage;
  std::vector<trine::reference::View> views;  // by tensor
  std::vector<uint32_t> changing;  // tensors whose views depend on a run's parameters or alternates
  trine::cpu::AttentionRoom attention_room;
  std::vector<uint32_t> dimensions;        // parameters that are a dimension of some tensor
  std::vector<int64_t> resolved;           // the parameters that the views are for; empty: none yet
  std::vector<uint32_t> alternates;        // the alternates that the views are for, by slot
  bool is_warm = false;                    // whether the plan has been run
  std::optional<trine::cpu::TeamRun> run;  // points into the members above
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

// Returns false for types that only a newer host knows. A graph of such a host may hold tensors of
// these types for ops that other backends run.
bool IsKnown(const trine_tensor& t) { return sdk::FindDtype(t.dtype) != nullptr; }

void ResolveViews(trine_plan* plan) {
  const std::vector<int64_t> max = plan->graph.MaxParams();
  plan->views.resize(plan->graph.tensors.size());
  plan->resolved.reserve(max.size());
  plan->alternates.assign(plan->graph.slots.size(), 0);
  for (uint32_t t = 0; t < plan->views.size(); ++t) {
    const trine_tensor& tensor = plan->graph.tensors[t];
    if (!IsKnown(tensor)) continue;
    plan->views[t] = ToReference(plan->storage.ViewOf(plan->graph, t, max.data(), nullptr));
    if (tensor.layout != TRINE_LAYOUT_PLAIN) {
      SetPacked(*plan->device->backend->choice.level->table, &plan->views[t]);
    }
    if (Changes(plan->graph, tensor)) plan->changing.push_back(t);
  }
  for (uint32_t p = 0; p < max.size(); ++p) {
    const auto has = [p](const trine_tensor& t) {
      return std::find(t.dims, t.dims + t.rank, -1 - int64_t{p}) != t.dims + t.rank;
    };
    const auto& tensors = plan->graph.tensors;
    if (std::any_of(tensors.begin(), tensors.end(), has)) plan->dimensions.push_back(p);
  }
}

BoundCall BindCall(trine_plan& plan, const Call& call, Split split, std::byte* activations) {
  const sdk::Op& op = plan.graph.ops[call.op];
  BoundCall bound;
  if (call.kind == Call::Kind::kQuantize) {
    bound.function = QuantizeShare;
    bound.name = sdk::kQuantizeName;
  } else {
    bound.function = split == Split::kColumns
                         ? FindColumnFunction(op.kind, SplitsByHeads(plan.graph, op))
                         : FindOpFunction(op.kind);
    bound.name = sdk::TimedName(plan.graph, op);
  }
  bound.call.op = &op;
  bound.call.kernels = plan.device->backend->choice.level->table;
  bound.call.caches = plan.device->backend->caches;
  if (backends::IsProduct(op.kind)) {
    const reference::View& w = plan.views[op.in[0]];
    const bool experts = op.kind == TRINE_OP_MOE_MATMUL;
    bound.call.ways =
        &plan.device->backend->ways->Of({w.type, w.packed, w.dims[0], w.dims[1], experts});
    bound.call.is_warm = &plan.is_warm;
  }
  for (size_t i = 0; i < op.in.size(); ++i) {
    if (op.HasInput(i)) bound.call.in[i] = &plan.views[op.in[i]];
  }
  for (size_t i = 0; i < op.out.size(); ++i) bound.call.out[i] = &plan.views[op.out[i]];
  if (plan.attention_room.partials != nullptr) bound.call.room = &plan.attention_room;
  if (call.activations != kNoActivations) {
    bound.call.chunks =
        reinterpret_cast<cpu_kernels::ActivationChunk*>(activations + call.activations);
  }
  return bound;
}

BoundChain BindChain(trine_plan& plan, const Chain& chain, std::byte* activations) {
  BoundChain bound;
  bound.split = chain.split;
  bound.weight_bytes = chain.weight_bytes;
  if (chain.split == Split::kColumns) {
    bound.columns = (chain.values + chain.unit - 1) / chain.unit;
  } else if (chain.split == Split::kRows) {
    const uint32_t outermost = plan.graph.tensors[chain.row_tensor].rank - 1;
    bound.rows = &plan.views[chain.row_tensor].dims[outermost];
  }
  for (const Call& call : chain.calls) {
    bound.calls.push_back(BindCall(plan, call, chain.split, activations));
  }
  return bound;
}

std::string ScheduleOn(const trine_device& device, const sdk::Graph& graph, Schedule* schedule) {
  const trine_backend& backend = *device.backend;
  const cpu_kernels::KernelTable* table = backend.choice.level->table;
  const bool quantizes = table != &cpu_kernels::kReferenceLevel;
  return MakeSchedule(graph,
                      {backend.host->worker_count, quantizes,
                       table->matmul_order != cpu_kernels::ActivationOrder::kRows},
                      schedule);
}

// The scratch holds the TEMP slots, then the quantised activations, then attention's partial
// results.
trine_status BindSteps(trine_plan* plan, const trine_plan_desc& desc, trine_error* err) {
  Schedule schedule;
  const std::string why = ScheduleOn(*plan->device, plan->graph, &schedule);
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
  std::byte* activations = scratch == nullptr ? nullptr : scratch + temp_bytes;
  std::vector<BoundStep> steps;
  for (const Step& step : schedule.steps) {
    BoundStep& bound = steps.emplace_back();
    bound.big = step.big;
    for (const Chain& chain : step.chains) {
      bound.chains.push_back(BindChain(*plan, chain, activations));
    }
  }
  plan->run.emplace(*plan->device->backend->host, std::move(steps));
  return TRINE_OK;
}

void ResolveRun(trine_plan* plan, const trine_run_args& args) {
  const uint32_t* alternates = args.n_alternates != 0 ? args.alternates : nullptr;
  const auto alternate = [&](size_t slot) { return alternates == nullptr ? 0 : alternates[slot]; };
  bool same_alternates = true;
  for (size_t slot = 0; slot < plan->alternates.size(); ++slot) {
    same_alternates = same_alternates && plan->alternates[slot] == alternate(slot);
    plan->alternates[slot] = alternate(slot);
  }
  // Usually nothing is to be done: no dimension changes from one token to the next.
  const bool same = same_alternates && !plan->resolved.empty() &&
                    std::all_of(plan->dimensions.begin(), plan->dimensions.end(),
                                [&](uint32_t p) { return plan->resolved[p] == args.params[p]; });
  if (same) return;
  for (uint32_t t : plan->changing) {
    plan->views[t] = ToReference(plan->storage.ViewOf(plan->graph, t, args.params, alternates));
  }
  plan->resolved.assign(args.params, args.params + args.n_params);
}

// Returns the function by which the SDK asks why the device refuses an op.
auto RefusalOf(const trine_device& device) {
  const cpu_kernels::KernelTable& kernels = *device.backend->choice.level->table;
  return [&kernels](const sdk::Graph& graph, size_t op) {
    const std::string why = WhyNotSupported(graph, op);
    return why.empty() ? WhyNotInLayout(kernels, graph, op) : why;
  };
}

}  // namespace

trine_status PlanCalls::QueryOp(trine_device* device, const trine_graph* graph, uint32_t op,
                                const int64_t*, trine_op_support* out, trine_error* err) {
  return sdk::AnswerOpQuery(graph, op, device->backend->Support(), RefusalOf(*device), out, err);
}

trine_status PlanCalls::Query(trine_device* device, const trine_graph* given, trine_plan_info* out,
                              trine_error* err) {
  return sdk::Guard(err, [&]() -> trine_status {
    sdk::Graph graph;
    const trine_status status =
        sdk::AcceptGraph(given, device->backend->Support(), RefusalOf(*device), &graph, err);
    if (status != TRINE_OK) return status;
    Schedule schedule;
    const std::string why = ScheduleOn(*device, graph, &schedule);
    if (!why.empty()) return Fail(err, TRINE_UNIMPLEMENTED, why);
    trine_plan_info info{};
    info.scratch_alignment = sdk::kScratchAlignment;
    info.scratch_bytes = sdk::LayOutScratch(graph, nullptr) + schedule.scratch_bytes;
    sdk::WriteOut(out, info);
    return TRINE_OK;
  });
}

trine_status PlanCalls::Create(trine_device* device, const trine_plan_desc* given, trine_plan** out,
                               trine_error* err) {
  return sdk::Guard(err, [&]() -> trine_status {
    const trine_plan_desc desc = sdk::ReadIn(given);
    auto plan = std::make_unique<trine_plan>();
    plan->device = device;
    trine_status status = sdk::AcceptGraph(desc.graph, device->backend->Support(),
                                           RefusalOf(*device), &plan->graph, err);
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

trine_status PlanCalls::Run(trine_plan* plan, const trine_run_args* given, trine_error* err) {
  const trine_run_args args = sdk::ReadIn(given);
  return sdk::Guard(err, [&]() -> trine_status {
    const trine_status status = sdk::CheckRun(plan->graph, args, err);
    if (status != TRINE_OK) return status;
    return sdk::SubmitSynchronously(args.sync, backends::TimelineOf, err, [&](trine_error* own) {
      ResolveRun(plan, args);
      const trine_status ran = plan->run->Run();
      plan->is_warm = plan->is_warm || ran == TRINE_OK;
      return ran == TRINE_OK ? ran : Fail(own, ran, "the host's thread team did not run the plan");
    });
  });
}

void PlanCalls::Destroy(trine_plan* plan) { delete plan; }

}  // namespace trine::cpu
