// layouts: packing of weights and caches into the device's own order.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/oracle.h"
#include "plugins/conformance/packing.h"
#include "plugins/conformance/sections.h"
#include "trine/sdk/dtype.h"

namespace trine::conformance {
namespace {

// An error is a failure only when the op is claimed: another graph is none to ask about.
std::vector<trine_layout_info> List(Trial& trial, Session& s, const GraphSpec& graph,
                                    uint32_t tensor, bool claimed) {
  constexpr size_t kCapacity = 16;
  std::vector<trine_layout_info> infos(kCapacity);
  const PackedGraph packed(graph);
  trine_layout_list list{sizeof(list), sizeof(trine_layout_info), kCapacity, 0, infos.data()};
  const Answer answer = trial.Call("layout_list", [&](trine_error* err) {
    return s.table().layout_list(s.device(), packed.get(), tensor, &list, err);
  });
  if (claimed) trial.ExpectOk(answer, "layout_list");
  infos.resize(answer.Ok() ? std::min<size_t>(list.count, kCapacity) : 0);
  return infos;
}

// A tensor of a case in a layout.
struct Choice {
  uint32_t tensor;
  Packing packing;
  Bytes packed;
};

// The case with its tensors packed gives what it gives plain.
void RunPacked(Trial& trial, Session& s, const OpCase& plain_case,
               const std::vector<Choice>& choices) {
  OpCase op_case = plain_case;
  std::string what;
  for (const Choice& c : choices) {
    op_case.graph.tensors[c.tensor].layout = c.packing.info().layout;
    op_case.graph.slots[c.packing.slot()].bytes = c.packing.info().packed_bytes;
    op_case.images[c.packing.slot()] = c.packed;
    absl::StrAppend(&what, what.empty() ? "" : " with ", c.packing.what());
  }
  std::string reason;
  if (Claim(trial, s, &op_case.graph, &reason) == TRINE_SUPPORT_NO) {
    // Layouts are listed tensor by tensor: nobody promised that two go together.
    trial.Expect(choices.size() > 1, absl::StrCat(what, " is listed, but refused: ", reason));
    return;
  }
  const auto plan = DevicePlan::Create(trial, s, op_case.graph, op_case.images);
  if (plan == nullptr) return;
  Images expected = plain_case.images, got;
  RunOracle(plain_case.graph, op_case.params, &expected);
  if (!trial.ExpectOk(plan->Run(trial, op_case.params), absl::StrCat("plan_run with ", what)) ||
      !plan->Download(trial, &got)) {
    return;
  }
  for (const Choice& c : choices) {
    const uint32_t slot = c.packing.slot();
    if (c.packing.is_cache()) {
      Bytes back(plain_case.images[slot].size(), kGarbage);
      trial.ExpectOk(
          c.packing.Convert(trial, TRINE_LAYOUT_UNPACK, {0, c.packing.rows()}, got[slot], &back),
          c.packing.what());
      got[slot] = std::move(back);
    } else if (trial.Expect(got[slot] == c.packed,
                            absl::StrCat(c.packing.what(), ": a run changed the weights"))) {
      got[slot] = plain_case.images[slot];
    }
  }
  const std::string wrong = CompareImages(plain_case.graph, op_case.params, expected, got,
                                          op_case.graph.numerics == TRINE_NUMERICS_EXACT);
  trial.Expect(wrong.empty(), absl::StrCat(what, ": ", op_case.graph.Describe(), ": ", wrong));
}

// Every layout of each of the tensors alone, then the best of all together. Returns how many there
// are.
int CheckCase(Trial& trial, Session& s, OpCase op_case, const std::vector<uint32_t>& tensors,
              std::string* reason) {
  const bool claimed = Claim(trial, s, &op_case.graph, reason) != TRINE_SUPPORT_NO;
  std::vector<Choice> best;
  int layouts = 0;
  for (uint32_t tensor : tensors) {
    const auto infos = List(trial, s, op_case.graph, tensor, claimed);
    for (const trine_layout_info& info : infos) {
      ++layouts;
      const Packing packing(s, op_case.graph, tensor, info);
      packing.CheckInfo(trial);
      if (trial.failed()) return layouts;
      const Bytes& plain = op_case.images[packing.slot()];
      Bytes packed = packing.Pack(trial, plain);
      if (packed.empty()) return layouts;
      packing.CheckUnpack(trial, plain, packed);
      Choice choice{tensor, packing, std::move(packed)};
      if (claimed && tensors.size() == 1) RunPacked(trial, s, op_case, {choice});
      if (&info == &infos.front()) best.push_back(std::move(choice));
    }
  }
  if (claimed && tensors.size() > 1 && best.size() == tensors.size()) {
    RunPacked(trial, s, op_case, best);
  }
  trial.Alive();
  return layouts;
}

void CheckWeights(Trial& trial, Bench& bench, Session& s, uint32_t dtype) {
  Random random(bench.options().seed);
  std::string reason;
  int layouts = 0;
  for (int64_t n : {1, 17, 64, 130}) {
    OpCase matmul = MatmulCase(random, dtype, 512, n, 3, false, Spread32::kBell);
    const uint32_t weight = matmul.graph.ops[0].in[0];
    layouts += CheckCase(trial, s, std::move(matmul), {weight}, &reason);
  }
  for (int64_t n : {5, 17, 64}) {  // experts whose rows fill no whole groups, and such that do
    OpCase experts = MoeMatmulCase(random, dtype, 512, n, 3);
    const uint32_t weight = experts.graph.ops[0].in[0];
    layouts += CheckCase(trial, s, std::move(experts), {weight}, &reason);
  }
  if (layouts == 0) {
    trial.Skip(absl::StrCat("none but the plain layout is listed",
                            reason.empty() ? "" : "; refused: ", reason));
  }
}

void CheckCaches(Trial& trial, Bench& bench, Session& s, uint32_t dtype) {
  Random random(bench.options().seed);
  std::string reason;
  int layouts = 0;
  for (OpCase& op_case : CacheCases(random, dtype)) {
    const OpSpec& op = op_case.graph.ops[0];
    const std::vector<uint32_t> caches = op.kind == TRINE_OP_KV_STORE
                                             ? std::vector<uint32_t>{op.out[0]}
                                             : std::vector<uint32_t>{op.in[1], op.in[2]};
    layouts += CheckCase(trial, s, op_case, caches, &reason);
  }
  if (layouts == 0) {
    trial.Skip(absl::StrCat("none but the canonical layout is listed",
                            reason.empty() ? "" : "; refused: ", reason));
  }
}

}  // namespace

void RunLayoutChecks(Bench& bench) {
  const auto run = [&](const std::string& name, auto check, uint32_t dtype) {
    bench.Run(name, [&](Trial& trial, Session& s) {
      if (s.table().layout_list == nullptr || s.table().layout_convert == nullptr) {
        return trial.Skip("layouts are not offered");
      }
      check(trial, bench, s, dtype);
    });
  };
  for (uint32_t dtype : WeightTypes()) {
    run(absl::StrCat("layouts/", sdk::DtypeName(dtype)), CheckWeights, dtype);
  }
  for (uint32_t dtype : CacheTypes()) {
    run(absl::StrCat("layouts/cache/", sdk::DtypeName(dtype)), CheckCaches, dtype);
  }
}

}  // namespace trine::conformance
