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
constexpr std::chrono::seconds kBudget{6};
constexpr int kFewest = 16;
// Where a cycle takes long, few fit in a window, and caches and the allocator may not have settled
// in the first of them. Memory that seems to leak is watched for so many rounds more, of windows
// twice as long: a leak goes on.
constexpr int kMoreRounds = 2;
// A cycle may take longer than a second: signs of life go by time, not by cycles.
constexpr std::chrono::milliseconds kSignOfLife{100};

// What the process and the device hold. A device in the CPU's memory is measured with the process.
Resources MeasureWith(Trial& trial, Bench& bench, Session& s) {
  Resources r = Measure();
  if ((s.info().flags & TRINE_DEVICE_UNIFIED_MEMORY) != 0) return r;
  trine_device_info info{};
  info.struct_size = sizeof(info);
  const Answer answer = trial.Call("device_info", [&](trine_error* err) {
    return s.table().device_info(s.backend(), bench.device(), &info, err);
  });
  if (trial.ExpectOk(answer, "device_info")) {
    r.device_bytes = static_cast<int64_t>(info.memory_total - info.memory_free);
  }
  return r;
}

// Caches fill up during the first half; growth is measured over two windows of the second.
void Cycle(Trial& trial, Bench& bench, Session& s, const std::function<bool()>& once) {
  const KitOptions& options = bench.options();
  const int wanted = std::max(options.create_destroy_cycles, kFewest);
  bool broken = false;
  Clock::time_point sign = Clock::now();
  const auto spend = [&](int limit, int fewest, std::chrono::duration<double> budget) {
    const auto begin = Clock::now();
    int done = 0;
    while (done < limit && !broken) {
      broken = !once();
      ++done;
      if (const auto now = Clock::now(); now - sign > kSignOfLife) {
        trial.Alive();
        sign = now;
      }
      if (!options.long_run && done >= fewest && Clock::now() - begin > budget) break;
    }
    return done;
  };
  Windows windows;
  const int first = spend(wanted / 2, kFewest / 2, kBudget / 3.0);
  windows.end = MeasureWith(trial, bench, s);
  int all = first;
  const auto next_window = [&](int times) {
    windows.start = windows.middle;
    windows.first_cycles = windows.second_cycles;
    windows.middle = windows.end;
    windows.second_cycles = spend(times * first / 2, kFewest / 4, times * kBudget / 3.0);
    windows.end = MeasureWith(trial, bench, s);
    all += windows.second_cycles;
  };
  next_window(1);
  next_window(1);
  // Nothing settles descriptors and threads, and going on may leave none to count with.
  std::string growth = DescribeHandleGrowth(windows);
  if (growth.empty()) {
    growth = DescribeMemoryGrowth(windows);
    for (int i = 0; i < kMoreRounds && !growth.empty() && !broken; ++i) {
      next_window(2);
      next_window(2);
      growth = DescribeMemoryGrowth(windows);
    }
  }
  if (broken) return;  // noted
  trial.Expect(growth.empty(), growth);
  trial.Note(absl::StrCat(
      all, " cycles", all < wanted - 3 ? absl::StrCat(" of ", wanted, ": the time was up") : ""));
}

void CyclePlans(Trial& trial, Bench& bench, Session& s) {
  const std::optional<OpCase> probe = bench.Probe(trial, s);
  if (!probe) return;
  Cycle(trial, bench, s, [&] {
    const auto plan = DevicePlan::Create(trial, s, probe->graph, probe->images);
    return plan != nullptr && trial.ExpectOk(plan->Run(trial, probe->params), "plan_run");
  });
}

void CycleRuns(Trial& trial, Bench& bench, Session& s) {
  const std::optional<OpCase> probe = bench.Probe(trial, s);
  if (!probe) return;
  const auto plan = DevicePlan::Create(trial, s, probe->graph, probe->images);
  if (plan == nullptr) return;
  Cycle(trial, bench, s,
        [&] { return trial.ExpectOk(plan->Run(trial, probe->params), "plan_run"); });
}

}  // namespace

void RunCycleChecks(Bench& bench) {
  bench.Run("cycles/backends", [&](Trial& trial, Session& s) {
    Cycle(trial, bench, s, [&] {
      return Session::Open(trial, bench.runner(), bench.table(), bench.device(), 1,
                           bench.options().options) != nullptr;
    });
  });
  bench.Run("cycles/devices", [&](Trial& trial, Session& s) {
    Cycle(trial, bench, s, [&] {
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
    Cycle(trial, bench, s, [&] {
      const BufferPtr small = s.Alloc(trial, 1000), large = s.Alloc(trial, 300000);
      return small != nullptr && large != nullptr &&
             trial.ExpectOk(s.Write(trial, large.get(), 299999, "x", 1), "buffer_write");
    });
  });
  bench.Run("cycles/timelines", [&](Trial& trial, Session& s) {
    Cycle(trial, bench, s, [&] { return s.NewTimeline(trial, 0) != nullptr; });
  });
  bench.Run("cycles/plans", [&](Trial& trial, Session& s) { CyclePlans(trial, bench, s); });
  bench.Run("cycles/runs", [&](Trial& trial, Session& s) { CycleRuns(trial, bench, s); });
}

}  // namespace trine::conformance
