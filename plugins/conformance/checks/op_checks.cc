// Section op: compares the ops that the device supports with the scalar reference.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugins/conformance/cases/oracle.h"
#include "plugins/conformance/checks/sections.h"
#include "trine/sdk/dtype.h"

namespace trine::conformance {
namespace {

// Runs the cases of a group, each with another size of team in turn. Of cases beyond f16's range,
// FAST results need only be canonical.
void CheckGroup(Trial& trial, Bench& bench, const OpGroup& group) {
  Random random(bench.options().seed);
  const std::vector<uint32_t>& counts = bench.sessions().worker_counts();
  std::string reason;
  int exact = 0, near = 0, canonical = 0, refused = 0;
  const int rounds = bench.options().long_run ? 5 : 1;
  size_t turn = 0;
  for (int round = 0; round < rounds; ++round) {
    for (OpCase& op_case : group.make(random)) {
      Session* s = bench.sessions().Get(trial, counts[turn++ % counts.size()]);
      if (s == nullptr) return;
      trial.Alive();
      const uint32_t claim = Claim(trial, *s, &op_case.graph, &reason);
      if (claim == TRINE_SUPPORT_NO) {
        ++refused;
        continue;
      }
      ++(claim == TRINE_SUPPORT_EXACT ? exact : op_case.extreme ? canonical : near);
      RunCase(trial, *s, op_case, {}, {});
      s->ReportBreaches(trial);
    }
  }
  if (exact + near + canonical == 0) return trial.Skip(absl::StrCat("refused: ", reason));
  std::vector<std::string> notes;
  const auto add = [&](int n, const char* what) {
    if (n != 0) notes.push_back(absl::StrCat(n, what));
  };
  add(exact, " cases bit-equal");
  add(near, " within tolerance");
  add(canonical, " beyond f16's range canonical");
  add(refused, " refused");
  trial.Note(absl::StrJoin(notes, ", "));
}

// Expects the same bits from every size of team, FAST or not.
void CheckWorkerCounts(Trial& trial, Bench& bench) {
  Random random(bench.options().seed);
  int compared = 0;
  for (const OpGroup& group : AllOpGroups()) {
    std::vector<OpCase> cases = group.make(random);
    OpCase& op_case = cases[1 % cases.size()];
    Images first;
    for (uint32_t workers : bench.sessions().worker_counts()) {
      Session* s = bench.sessions().Get(trial, workers);
      std::string reason;
      if (s == nullptr || Claim(trial, *s, &op_case.graph, &reason) == TRINE_SUPPORT_NO) break;
      const auto plan = DevicePlan::Create(trial, *s, op_case.graph, op_case.images);
      if (plan == nullptr || !trial.ExpectOk(plan->Run(trial, op_case.params), "plan_run")) return;
      Images got;
      if (!plan->Download(trial, &got)) return;
      if (first.empty()) first = got;
      const std::string wrong = CompareBits(op_case.graph, op_case.params, first, got);
      if (!wrong.empty()) {
        return trial.Fail(absl::StrCat(op_case.graph.Describe(), ": the result depends on the ",
                                       "number of workers: ", workers, " instead of 1: ", wrong));
      }
      ++compared;
    }
    trial.Alive();
  }
  if (compared == 0) trial.Skip("the device claims no op");
}

// Checks that an op waits for earlier ops, also if workers start far apart in time.
void CheckOrder(Trial& trial, Bench& bench) {
  Random random(bench.options().seed);
  std::string reason;
  for (bool mix_rows : {true, false}) {
    for (uint32_t dtype : WeightTypes()) {
      OpCase chain = MatmulChain(random, dtype, mix_rows);
      bool claimed = true;
      for (uint32_t workers : bench.sessions().worker_counts()) {
        Session* s = bench.sessions().Get(trial, workers);
        if (s == nullptr) return;
        claimed = Claim(trial, *s, &chain.graph, &reason) != TRINE_SUPPORT_NO;
        if (!claimed) break;
        for (const auto start :
             {ObservingHost::Start::kFirstFirst, ObservingHost::Start::kLastFirst}) {
          s->host().StartWorkers(start);
          RunCase(trial, *s, chain, {}, {});
          s->host().StartWorkers(ObservingHost::Start::kTogether);
          trial.Alive();  // all of it takes a second, and a minute where others have the processors
        }
      }
      if (claimed) return;  // one type is enough
    }
  }
  trial.Skip(absl::StrCat("no matmul is claimed: ", reason));
}

void CheckLayer(Trial& trial, Bench& bench) {
  Random random(bench.options().seed);
  int run = 0;
  std::string reason = "nothing was tried";
  for (uint32_t weights : {TRINE_DTYPE_Q4_K, TRINE_DTYPE_Q8_0, TRINE_DTYPE_F16}) {
    for (uint32_t workers : bench.sessions().worker_counts()) {
      OpCase layer = TransformerLayer(
          random, weights, weights == TRINE_DTYPE_F16 ? TRINE_DTYPE_F32 : TRINE_DTYPE_F16,
          workers == 2 ? 1 : 5);
      Session* s = bench.sessions().Get(trial, workers);
      if (s == nullptr) return;
      if (Claim(trial, *s, &layer.graph, &reason) == TRINE_SUPPORT_NO) continue;
      ++run;
      RunCase(trial, *s, layer, {}, {});
      trial.Alive();
    }
  }
  if (run == 0) trial.Skip(absl::StrCat("refused: ", reason));
}

}  // namespace

void RunOpChecks(Bench& bench) {
  for (const OpGroup& group : AllOpGroups()) {
    bench.Run(absl::StrCat("op/", group.name),
              [&](Trial& trial, Session&) { CheckGroup(trial, bench, group); });
  }
  bench.Run("op/worker-counts", [&](Trial& trial, Session&) { CheckWorkerCounts(trial, bench); });
  bench.Run("op/order", [&](Trial& trial, Session&) { CheckOrder(trial, bench); });
  bench.Run("op/transformer-layer", [&](Trial& trial, Session&) { CheckLayer(trial, bench); });
}

}  // namespace trine::conformance
