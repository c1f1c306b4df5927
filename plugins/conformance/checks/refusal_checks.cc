// Section refusals: checks every answer of op_query, and that plans agree with it. Section
// failures: the host refuses its team; memory runs out.
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/cases/oracle.h"
#include "plugins/conformance/checks/sections.h"

namespace trine::conformance {
namespace {

struct Tally {
  int exact = 0, fast = 0, no = 0;
};

// Checks that NO has a reason and that the estimate is a finite time. Returns the support.
uint32_t CheckAnswer(Trial& trial, Session& s, const GraphSpec& graph) {
  const PackedGraph packed(graph);
  trine_op_support support{};
  std::memset(&support, 0xA5, sizeof(support));
  support.struct_size = sizeof(support);
  const Answer answer = s.Call(trial, "op_query", &trine_plugin::op_query, s.device(), packed.get(),
                               0, nullptr, &support);
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

// Expects a plan to be refused where the op was, and made where the op was claimed.
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

uint64_t VirtualBytes() {
  unsigned long long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%llu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

void CheckTeamRefused(Trial& trial, Session& s, const OpCase& probe, DevicePlan& plan) {
  const int before = s.host().refused_runs();
  s.host().RefuseParallelRun(true);
  const Answer answer = plan.Run(trial, probe.params);
  s.host().RefuseParallelRun(false);
  if (s.host().refused_runs() != before) {
    trial.ExpectRefused(answer, "plan_run whose parallel_run was refused");
  }
  trial.ExpectOk(plan.Run(trial, probe.params), "plan_run after the host's team was back");
  Images got;
  if (!plan.Download(trial, &got)) return;
  const std::string wrong = CompareResults(probe.graph, probe.params,
                                           RunOracle(probe.graph, probe.params, probe.images), got);
  trial.Expect(wrong.empty(), absl::StrCat("after the host's team was back: ", wrong));
}

// Asks for a large buffer while little address space is left. A device with its own memory may
// still allocate it; then the check is skipped.
void CheckOutOfMemory(Trial& trial, Session& s) {
  constexpr uint64_t kRoom = 256 << 20;
  if (TRINE_SANITIZER_HERE != TRINE_SANITIZER_NONE) {
    return trial.Skip("sanitizers need the whole address space");
  }
  rlimit before{};
  if (getrlimit(RLIMIT_AS, &before) != 0) return trial.Skip("RLIMIT_AS can't be read");
  rlimit tight = before;
  tight.rlim_cur = VirtualBytes() + kRoom;
  if (setrlimit(RLIMIT_AS, &tight) != 0) return trial.Skip("RLIMIT_AS can't be set");
  BufferPtr buffer;
  const Answer answer = s.TryAlloc(trial, 4 * kRoom, TRINE_MEMORY_STATE, &buffer);
  setrlimit(RLIMIT_AS, &before);
  if (answer.Ok()) return trial.Skip("the device's memory is not the process's");
  trial.ExpectRefused(answer, "buffer_alloc when memory is short", {TRINE_RESOURCE_EXHAUSTED});
  trial.Expect(s.Alloc(trial, 4096) != nullptr, "no buffer could be had afterwards");
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
  bench.RunOnProbe("refusals/short-answer", [](Trial& trial, Session& s, const OpCase& probe) {
    GraphSpec graph = probe.graph;
    graph.ops[0].kind = 9999;  // refused, so that there is a reason to write
    const PackedGraph packed(graph);
    for (uint32_t size : {8u, 16u, 20u}) {
      trine_op_support support;
      std::memset(&support, 0xA5, sizeof(support));
      support.struct_size = size;
      s.Call(trial, "op_query", &trine_plugin::op_query, s.device(), packed.get(), 0, nullptr,
             &support);
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

void RunFailureChecks(Bench& bench) {
  bench.RunOnPlan("failures/team-refused", CheckTeamRefused);
  bench.Run("failures/out-of-memory", CheckOutOfMemory);
}

}  // namespace trine::conformance
