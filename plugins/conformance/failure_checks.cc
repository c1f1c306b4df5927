// failures: a host that refuses its team, memory that runs out.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/oracle.h"
#include "plugins/conformance/sections.h"

namespace trine::conformance {
namespace {

uint64_t VirtualBytes() {
  unsigned long long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%llu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

void CheckTeamRefused(Trial& trial, Bench& bench, Session& s) {
  const std::optional<OpCase> probe = bench.Probe(trial, s);
  if (!probe) return;
  const auto plan = DevicePlan::Create(trial, s, probe->graph, probe->images);
  if (plan == nullptr) return;
  const int before = s.host().refused_runs();
  s.host().RefuseParallelRun(true);
  const Answer answer = plan->Run(trial, probe->params);
  s.host().RefuseParallelRun(false);
  if (s.host().refused_runs() != before) {
    trial.ExpectRefused(answer, "plan_run whose parallel_run was refused");
  }
  trial.ExpectOk(plan->Run(trial, probe->params), "plan_run after the host's team was back");
  Images expected = probe->images, got;
  RunOracle(probe->graph, probe->params, &expected);
  if (!plan->Download(trial, &got)) return;
  const std::string wrong = CompareImages(probe->graph, probe->params, expected, got,
                                          probe->graph.numerics == TRINE_NUMERICS_EXACT);
  trial.Expect(wrong.empty(), absl::StrCat("after the host's team was back: ", wrong));
}

// With little address space left a large buffer of host memory can't be had. Devices with memory of
// their own may still give it: then there is nothing to see.
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

void RunFailureChecks(Bench& bench) {
  bench.Run("failures/team-refused",
            [&](Trial& trial, Session& s) { CheckTeamRefused(trial, bench, s); });
  bench.Run("failures/out-of-memory", CheckOutOfMemory);
}

}  // namespace trine::conformance
