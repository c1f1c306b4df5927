// cycles: everything that can be made and given back, a thousand times, without growing.
#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/resource_meter.h"
#include "plugins/conformance/sections.h"

namespace trine::conformance {
namespace {

using Clock = std::chrono::steady_clock;

// Opening a GPU takes its time: without long_run a check ends after this long.
constexpr std::chrono::seconds kBudget{4};
constexpr int kFewest = 16;

// Caches fill up during the first half; growth is measured over the second.
void Cycle(Trial& trial, const KitOptions& options, const std::function<bool()>& once) {
  const int wanted = std::max(options.create_destroy_cycles, kFewest);
  const auto spend = [&](int limit, std::chrono::duration<double> budget) {
    const auto begin = Clock::now();
    int done = 0;
    while (done < limit) {
      if (!once()) return -1;
      if (++done % 16 == 0) trial.Alive();
      if (!options.long_run && done >= kFewest / 2 && Clock::now() - begin > budget) break;
    }
    return done;
  };
  const int first = spend(wanted / 2, kBudget / 2.0);
  if (first < 0) return;
  const Resources before = Measure();
  const int second = spend(first, kBudget);
  if (second < 0) return;
  const std::string growth = DescribeGrowth(before, Measure(), second);
  trial.Expect(growth.empty(), growth);
  trial.Note(absl::StrCat(
      first + second, " cycles",
      first + second < wanted - 1 ? absl::StrCat(" of ", wanted, ": the time was up") : ""));
}

void CyclePlans(Trial& trial, Bench& bench, Session& s) {
  const std::optional<OpCase> probe = bench.Probe(trial, s);
  if (!probe) return;
  Cycle(trial, bench.options(), [&] {
    const auto plan = DevicePlan::Create(trial, s, probe->graph, probe->images);
    return plan != nullptr && trial.ExpectOk(plan->Run(trial, probe->params), "plan_run");
  });
}

void CycleRuns(Trial& trial, Bench& bench, Session& s) {
  const std::optional<OpCase> probe = bench.Probe(trial, s);
  if (!probe) return;
  const auto plan = DevicePlan::Create(trial, s, probe->graph, probe->images);
  if (plan == nullptr) return;
  Cycle(trial, bench.options(),
        [&] { return trial.ExpectOk(plan->Run(trial, probe->params), "plan_run"); });
}

}  // namespace

void RunCycleChecks(Bench& bench) {
  bench.Run("cycles/backends", [&](Trial& trial, Session&) {
    Cycle(trial, bench.options(), [&] {
      return Session::Open(trial, bench.runner(), bench.table(), bench.device(), 1,
                           bench.options().options) != nullptr;
    });
  });
  bench.Run("cycles/devices", [&](Trial& trial, Session& s) {
    Cycle(trial, bench.options(), [&] {
      trine_device* device = nullptr;
      const Answer answer = trial.Call("device_open", [&](trine_error* err) {
        return s.table().device_open(s.backend(), bench.device(), &device, err);
      });
      if (!trial.ExpectOk(answer, "device_open, the device being open already")) return false;
      s.table().device_close(device);
      return true;
    });
  });
  bench.Run("cycles/buffers", [&](Trial& trial, Session& s) {
    Cycle(trial, bench.options(), [&] {
      const BufferPtr small = s.Alloc(trial, 1000), large = s.Alloc(trial, 300000);
      return small != nullptr && large != nullptr &&
             trial.ExpectOk(s.Write(trial, large.get(), 299999, "x", 1), "buffer_write");
    });
  });
  bench.Run("cycles/timelines", [&](Trial& trial, Session& s) {
    Cycle(trial, bench.options(), [&] { return s.NewTimeline(trial, 0) != nullptr; });
  });
  bench.Run("cycles/plans", [&](Trial& trial, Session& s) { CyclePlans(trial, bench, s); });
  bench.Run("cycles/runs", [&](Trial& trial, Session& s) { CycleRuns(trial, bench, s); });
}

}  // namespace trine::conformance
