// Section abi: longer structs of a newer host, pointers that are gone after the call, bindings,
// parameters, alternates and views.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/cases/oracle.h"
#include "plugins/conformance/checks/sections.h"

namespace trine::conformance {
namespace {

// Padding that makes each struct look as if it had three more members.
constexpr size_t kPadding = 24;

void CheckGaps(Trial& trial, Bench& bench, Session& s) {
  Random random(bench.options().seed);
  int claimed = 0;
  for (const OpGroup& group : AllOpGroups()) {
    if (group.name != "add" && group.name != "mul" && group.name != "scale" &&
        group.name != "rms_norm" && group.name != "matmul/f32" && group.name != "matmul/q8_0") {
      continue;
    }
    for (OpCase& op_case : group.make(random)) {
      if (op_case.graph.tensors.back().offset == 0 || op_case.extreme) continue;  // has no gaps
      std::string reason;
      if (Claim(trial, s, &op_case.graph, &reason) == TRINE_SUPPORT_NO) continue;
      ++claimed;
      RunCase(trial, s, op_case, {}, {});
    }
  }
  if (claimed == 0) trial.Skip("the device claims no op over views with gaps that was tried");
}

void CheckAlternates(Trial& trial, Session& s, const OpCase& probe) {
  GraphSpec graph = probe.graph;
  for (trine_slot& slot : graph.slots) {
    if (slot.role == TRINE_ROLE_IO) slot.alternates = 3;
  }
  std::string reason;
  if (Claim(trial, s, &graph, &reason) == TRINE_SUPPORT_NO) {
    return trial.Skip(absl::StrCat("refused with alternates: ", reason));
  }
  const auto plan = DevicePlan::Create(trial, s, graph, probe.images);
  if (plan == nullptr) return;
  // Gives alternate `a` its own data: the data of the first alternate, rotated by `a` values.
  std::vector<Images> given(3, probe.images);
  for (size_t a = 0; a < 3; ++a) {
    for (size_t slot = 0; slot < given[a].size(); ++slot) {
      if (graph.slots[slot].role != TRINE_ROLE_IO || graph.Writes(static_cast<uint32_t>(slot))) {
        continue;
      }
      std::rotate(given[a][slot].begin(), given[a][slot].begin() + static_cast<ptrdiff_t>(4 * a),
                  given[a][slot].end());
    }
    if (!plan->Upload(trial, given[a], static_cast<uint32_t>(a))) return;
  }
  for (uint32_t a : {2u, 0u, 1u}) {
    RunOptions run;
    run.alternates.assign(graph.slots.size(), a);
    if (!trial.ExpectOk(plan->Run(trial, probe.params, run),
                        absl::StrCat("plan_run with alternate ", a))) {
      return;
    }
  }
  for (uint32_t a = 0; a < 3; ++a) {
    Images got;
    if (!plan->Download(trial, &got, a)) return;
    const std::string wrong =
        CompareResults(graph, probe.params, RunOracle(graph, probe.params, given[a]), got);
    trial.Expect(wrong.empty(), absl::StrCat("buffers of alternate ", a, ": ", wrong));
  }
  RunOptions run;
  run.alternates.assign(graph.slots.size(), 3);
  trial.ExpectRefused(plan->Run(trial, probe.params, run), "plan_run with alternate 3 of 3");
}

void CheckParams(Trial& trial, Session&, const OpCase& probe, DevicePlan& plan) {
  const trine_param& range = probe.graph.params[0];
  for (int64_t value : {range.min - 1, range.max + 1, int64_t{-5}, INT64_MAX}) {
    trial.ExpectRefused(
        plan.Run(trial, {value}),
        absl::StrCat("plan_run with parameter ", value, " outside ", range.min, " to ", range.max),
        {TRINE_INVALID_ARGUMENT, TRINE_OUT_OF_RANGE});
    if (trial.failed()) return;
  }
  trial.ExpectRefused(plan.Run(trial, {}), "plan_run without the graph's parameter");
  Images got;
  if (!plan.Download(trial, &got)) return;
  trial.Expect(got == probe.images, "a refused plan_run changed a buffer");
}

// Calls plan_create with one mistake at a time in its bindings.
void CheckBindings(Trial& trial, Session& s, const OpCase& probe) {
  const GraphSpec& graph = probe.graph;
  const PackedGraph packed(graph);
  std::vector<BufferPtr> buffers;
  std::vector<trine_binding> good;
  for (uint32_t i = 0; i < graph.slots.size(); ++i) {
    buffers.push_back(s.Alloc(trial, graph.slots[i].bytes));
    if (buffers.back() == nullptr) return;
    good.push_back({i, 0, {buffers.back().get(), 0, graph.slots[i].bytes}});
  }
  const auto refused = [&](const std::string& what, const std::vector<trine_binding>& bindings) {
    s.ExpectNoPlan(trial, packed.get(), bindings, absl::StrCat("plan_create with ", what));
  };
  std::vector<trine_binding> wrong = good;
  wrong.pop_back();
  refused("a slot that is not bound", wrong);
  refused("no bindings", {});
  wrong = good;
  wrong[0].span.bytes -= 4;
  refused("a slot bound to fewer bytes than it needs", wrong);
  wrong = good;
  wrong[0].span.offset = graph.slots[0].bytes;
  refused("a binding behind the end of its buffer", wrong);
  wrong = good;
  wrong[0].span.offset = UINT64_MAX - 63;
  refused("an overflowing binding", wrong);
  wrong = good;
  wrong[0].span.bytes = UINT64_MAX;
  refused("a binding larger than its buffer", wrong);
  wrong = good;
  wrong[0].slot = 1000;
  refused("a binding of a slot that is not there", wrong);
  wrong = good;
  wrong[0].alternate = 1;
  refused("a binding of an alternate that is not there", wrong);
  wrong = good;
  wrong[0].span.buffer = nullptr;
  refused("a null buffer", wrong);
}

}  // namespace

void RunAbiChecks(Bench& bench) {
  const auto run = [&](const char* name, const PlanOptions& options, size_t run_padding = 0) {
    bench.RunOnProbe(name, [&](Trial& trial, Session& s, const OpCase& probe) {
      RunOptions run_options;
      run_options.padding = run_padding;
      RunCase(trial, s, probe, options, run_options);
    });
  };
  run("abi/longer-elements", {.padding = kPadding}, kPadding);
  run("abi/graph-gone-after-create", {.scribble = true});
  run("abi/windows-of-one-buffer", {.share_buffer = true});
  bench.Run("abi/views-with-gaps", [&](Trial& trial, Session& s) { CheckGaps(trial, bench, s); });
  bench.RunOnProbe("abi/alternates", CheckAlternates);
  bench.RunOnPlan("abi/parameters", CheckParams);
  bench.RunOnProbe("abi/bindings", CheckBindings);
}

}  // namespace trine::conformance
