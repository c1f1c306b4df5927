// Section graphs: invalid graphs are refused.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/checks/sections.h"

namespace trine::conformance {
namespace {

// Breaks one thing in a good graph.
struct Breakage {
  const char* what;
  void (*apply)(GraphSpec* g);
};

constexpr Breakage kBreakages[] = {
    {"an unknown op", [](GraphSpec* g) { g->ops[0].kind = 9999; }},
    {"op kind 0", [](GraphSpec* g) { g->ops[0].kind = 0; }},
    {"an unknown dtype", [](GraphSpec* g) { g->tensors[0].dtype = 12345; }},
    {"dtype 0", [](GraphSpec* g) { g->tensors.back().dtype = 0; }},
    {"rank 0", [](GraphSpec* g) { g->tensors[0].rank = 0; }},
    {"rank 9", [](GraphSpec* g) { g->tensors[0].rank = 9; }},
    {"a tensor in a slot that is not there", [](GraphSpec* g) { g->tensors[0].slot = 77; }},
    {"an input that is not there", [](GraphSpec* g) { g->ops[0].in[0] = 0x7fffffff; }},
    {"an output that is not there", [](GraphSpec* g) { g->ops[0].out[0] = 1000; }},
    {"an absent output", [](GraphSpec* g) { g->ops[0].out[0] = TRINE_NONE; }},
    {"a required input left out", [](GraphSpec* g) { g->ops[0].in[0] = TRINE_NONE; }},
    {"no inputs", [](GraphSpec* g) { g->ops[0].in.clear(); }},
    {"no outputs", [](GraphSpec* g) { g->ops[0].out.clear(); }},
    {"far too many inputs", [](GraphSpec* g) { g->ops[0].in.resize(40, g->ops[0].in[0]); }},
    {"a second output", [](GraphSpec* g) { g->ops[0].out.push_back(g->ops[0].out[0]); }},
    {"a tensor that reaches beyond its slot", [](GraphSpec* g) { g->slots.back().bytes -= 4; }},
    {"an offset beyond its slot", [](GraphSpec* g) { g->tensors[0].offset = uint64_t{1} << 40; }},
    {"an overflowing offset", [](GraphSpec* g) { g->tensors[0].offset = UINT64_MAX - 3; }},
    {"dimensions whose product overflows",
     [](GraphSpec* g) {
       trine_tensor& t = g->tensors.back();
       t.rank = 4;
       std::fill(t.dims, t.dims + 4, int64_t{1} << 40);
     }},
    {"a dimension that names no parameter", [](GraphSpec* g) { g->tensors[0].dims[1] = -9; }},
    {"the most negative dimension", [](GraphSpec* g) { g->tensors[0].dims[1] = INT64_MIN; }},
    {"a huge stride", [](GraphSpec* g) { g->tensors.back().strides[1] = int64_t{1} << 61; }},
    {"a negative stride", [](GraphSpec* g) { g->tensors.back().strides[1] = -64; }},
    {"an unknown layout", [](GraphSpec* g) { g->tensors[0].layout = 0x123456789abcdef; }},
    {"inputs of other dimensions", [](GraphSpec* g) { g->tensors.back().dims[0] -= 1; }},
    {"numerics 0", [](GraphSpec* g) { g->numerics = 0; }},
    {"an unknown slot role", [](GraphSpec* g) { g->slots[0].role = 50; }},
    {"no alternates", [](GraphSpec* g) { g->slots[0].alternates = 0; }},
    {"a parameter whose range is empty",
     [](GraphSpec* g) { std::swap(g->params[0].min, g->params[0].max); }},
    {"a constant that is written",
     [](GraphSpec* g) { g->slots.back().role = TRINE_ROLE_CONSTANT; }},
    {"an integer output where values belong",
     [](GraphSpec* g) { g->tensors.back().dtype = TRINE_DTYPE_I32; }},
};

// Expects op_query and plan_create to refuse: with a status and a message, or NO and a reason.
void CheckBreakage(Trial& trial, Session& s, const OpCase& good, const Breakage& breakage) {
  GraphSpec graph = good.graph;
  breakage.apply(&graph);
  Answer answer;
  const trine_op_support support = QueryOp(trial, s, graph, 0, &answer);
  const std::string what = absl::StrCat("a graph with ", breakage.what);
  if (answer.Ok()) {
    trial.Expect(support.support == TRINE_SUPPORT_NO,
                 absl::StrCat("op_query: ", what, " is claimed as supported"));
    trial.Expect(support.support != TRINE_SUPPORT_NO || support.reason[0] != '\0',
                 absl::StrCat("op_query: ", what, " was refused without a reason"));
  } else {
    trial.ExpectRefused(answer, absl::StrCat("op_query: ", what));
  }
  // Buffers have the sizes of the good graph, so that only the graph is wrong.
  std::vector<BufferPtr> buffers;
  std::vector<trine_binding> bindings;
  for (uint32_t i = 0; i < good.graph.slots.size(); ++i) {
    buffers.push_back(s.Alloc(trial, good.graph.slots[i].bytes + 64));
    if (buffers.back() == nullptr) return;
    bindings.push_back({i, 0, {buffers.back().get(), 0, good.graph.slots[i].bytes}});
  }
  const PackedGraph packed(graph);
  trine_plan_info info{};
  info.struct_size = sizeof(info);
  // May refuse or not; must not crash.
  s.Call(trial, "plan_query", &trine_plugin::plan_query, s.device(), packed.get(), &info);
  s.ExpectNoPlan(trial, packed.get(), bindings, absl::StrCat("plan_create: ", what));
}

void CheckAttributes(Trial& trial, Session& s) {
  Random random(1);
  int tried = 0;
  for (OpCase& good : ProbeCases(random)) {
    std::string reason;
    if (good.graph.ops[0].attr.empty() ||
        Claim(trial, s, &good.graph, &reason) == TRINE_SUPPORT_NO) {
      continue;
    }
    ++tried;
    CheckBreakage(trial, s, good, {"no attributes", [](GraphSpec* g) { g->ops[0].attr.clear(); }});
    CheckBreakage(trial, s, good, {"attributes that are too short", [](GraphSpec* g) {
                                     const uint32_t size = 4;
                                     g->ops[0].attr.resize(size);
                                     std::memcpy(g->ops[0].attr.data(), &size, sizeof(size));
                                   }});
  }
  if (tried == 0) trial.Skip("the device claims no op with attributes that was tried");
}

void CheckOpIndex(Trial& trial, Session& s, const OpCase& good) {
  for (uint32_t op : {1u, 0xffffffffu}) {
    Answer answer;
    const trine_op_support support = QueryOp(trial, s, good.graph, op, &answer);
    trial.Expect(!answer.Ok() || support.support == TRINE_SUPPORT_NO,
                 absl::StrCat("op_query claims op ", op, " of a graph with one op"));
  }
}

// Adds an op or a type from the future to a graph with an op that the device supports. Only the new
// one may be refused.
void CheckUnknownBeside(Trial& trial, Session& s, const OpCase& good) {
  constexpr uint32_t kNoDtype = 34, kNoKind = 9999;
  const uint32_t first = good.graph.ops[0].in[0];
  GraphSpec unknown_kind = good.graph;
  const uint32_t y = unknown_kind.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {64});
  unknown_kind.AddOp(kNoKind, {first, first, first}, {y});
  // The new op is a copy of the old one over tensors of an unknown type, so that only the type is
  // wrong.
  GraphSpec unknown_type = good.graph;
  OpSpec twin = good.graph.ops[0];
  const auto retyped = [&](uint32_t tensor) {
    const uint32_t copy = unknown_type.AddAlias(tensor);
    trine_tensor& t = unknown_type.tensors[copy];
    unknown_type.slots.push_back(unknown_type.slots[t.slot]);
    t.slot = static_cast<uint32_t>(unknown_type.slots.size() - 1);
    t.dtype = kNoDtype;
    return copy;
  };
  for (uint32_t& tensor : twin.in) {
    if (tensor != TRINE_NONE) tensor = retyped(tensor);
  }
  for (uint32_t& tensor : twin.out) tensor = retyped(tensor);
  unknown_type.ops.push_back(twin);

  for (const auto& [what, graph] : {std::pair("an op of an unknown kind", &unknown_kind),
                                    std::pair("an op over an unknown dtype", &unknown_type)}) {
    Answer answer;
    trine_op_support support = QueryOp(trial, s, *graph, 0, &answer);
    if (trial.ExpectOk(answer, absl::StrCat("op_query of an op that is claimed, beside ", what))) {
      trial.Expect(
          support.support > TRINE_SUPPORT_NO,
          absl::StrCat("an op that is claimed is refused beside ", what, ": ", support.reason));
    }
    support = QueryOp(trial, s, *graph, 1, &answer);
    if (trial.ExpectOk(answer,
                       absl::StrCat("op_query of ", what, ", which is to be answered NO"))) {
      trial.Expect(support.support == TRINE_SUPPORT_NO,
                   absl::StrCat("op_query claims ", what, " as supported"));
      trial.Expect(support.reason[0] != '\0',
                   absl::StrCat("op_query refuses ", what, " without a reason"));
    }
  }
}

}  // namespace

void RunGraphChecks(Bench& bench) {
  bench.RunOnProbe("graphs/broken", [](Trial& trial, Session& s, const OpCase& probe) {
    for (const Breakage& breakage : kBreakages) {
      CheckBreakage(trial, s, probe, breakage);
      trial.Alive();
    }
    trial.Note(absl::StrCat(std::size(kBreakages), " broken graphs"));
  });
  bench.Run("graphs/attributes", CheckAttributes);
  bench.RunOnProbe("graphs/op-index", CheckOpIndex);
  bench.RunOnProbe("graphs/unknown-beside", CheckUnknownBeside);
}

}  // namespace trine::conformance
