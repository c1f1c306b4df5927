// submissions: plan_run's waits and signals.
#include <atomic>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/oracle.h"
#include "plugins/conformance/sections.h"

namespace trine::conformance {
namespace {

constexpr uint64_t kLong = 10'000'000'000;

Answer Wait(Trial& trial, Session& s, const TimelinePtr& timeline, uint64_t value,
            uint64_t timeout_ns = kLong) {
  return trial.Call("timeline_wait", [&](trine_error* err) {
    return s.table().timeline_wait(timeline.get(), value, timeout_ns, err);
  });
}

// A plan of the probe graph, and what its run must make of the images.
struct Submission {
  OpCase probe;
  std::unique_ptr<DevicePlan> plan;
  Images expected;

  bool Make(Trial& trial, Bench& bench, Session& s) {
    std::optional<OpCase> found = bench.Probe(trial, s);
    if (!found) return false;
    probe = std::move(*found);
    expected = probe.images;
    RunOracle(probe.graph, probe.params, &expected);
    plan = DevicePlan::Create(trial, s, probe.graph, probe.images);
    return plan != nullptr;
  }
  bool HasRun(Trial& trial) const {
    Images got;
    return plan->Download(trial, &got) &&
           CompareImages(probe.graph, probe.params, expected, got,
                         probe.graph.numerics == TRINE_NUMERICS_EXACT)
               .empty();
  }
  bool Untouched(Trial& trial) const {
    Images got;
    return plan->Download(trial, &got) && got == probe.images;
  }
};

void CheckSignals(Trial& trial, Bench& bench, Session& s) {
  Submission sub;
  if (!sub.Make(trial, bench, s)) return;
  const TimelinePtr a = s.NewTimeline(trial, 0), b = s.NewTimeline(trial, 10);
  if (a == nullptr || b == nullptr) return;
  RunOptions run;
  run.signals = {{a.get(), 1}, {b.get(), 20}};
  run.padding = 24;
  if (!trial.ExpectOk(sub.plan->Run(trial, sub.probe.params, run), "plan_run with two signals")) {
    return;  // its signals may never come
  }
  trial.ExpectOk(Wait(trial, s, a, 1), "waiting for plan_run's first signal");
  trial.ExpectOk(Wait(trial, s, b, 20), "waiting for plan_run's second signal");
  trial.Expect(sub.HasRun(trial), "plan_run signalled before its results were there");
}

void CheckWaits(Trial& trial, Bench& bench, Session& s) {
  Submission sub;
  if (!sub.Make(trial, bench, s)) return;
  const TimelinePtr gate = s.NewTimeline(trial, 0), done = s.NewTimeline(trial, 0);
  if (gate == nullptr || done == nullptr) return;
  RunOptions run;
  run.waits = {{gate.get(), 4}};
  run.signals = {{done.get(), 1}};
  // The call may block until the gate opens, so another thread opens it.
  std::atomic<bool> early{false};
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    early = s.table().timeline_wait(done.get(), 1, 0, nullptr) == TRINE_OK;
    s.table().timeline_signal(gate.get(), 4, nullptr);
  });
  const Answer answer = sub.plan->Run(trial, sub.probe.params, run);
  opener.join();
  if (!trial.ExpectOk(answer, "plan_run that waits for a point")) return;
  trial.Expect(!early, "plan_run did not wait: it was done before its wait was reached");
  trial.ExpectOk(Wait(trial, s, done, 1), "waiting for a run whose wait was reached");
  trial.Expect(sub.HasRun(trial), "a run that had to wait gave wrong results");
}

void CheckFailedWait(Trial& trial, Bench& bench, Session& s) {
  Submission sub;
  if (!sub.Make(trial, bench, s)) return;
  const TimelinePtr gate = s.NewTimeline(trial, 0), done = s.NewTimeline(trial, 0);
  if (gate == nullptr || done == nullptr) return;
  s.table().timeline_fail(gate.get(), TRINE_DATA_LOSS, "lost upstream", nullptr);
  RunOptions run;
  run.waits = {{gate.get(), 1}};
  run.signals = {{done.get(), 1}};
  const Answer submitted = sub.plan->Run(trial, sub.probe.params, run);
  if (!trial.Expect(
          submitted.Ok() || submitted.status == TRINE_DATA_LOSS,
          absl::StrCat("plan_run whose wait failed with DATA_LOSS gives ", submitted.Text()))) {
    return;
  }
  const Answer answer = Wait(trial, s, done, 1);
  trial.Expect(answer.status == TRINE_DATA_LOSS,
               absl::StrCat("the signal of a run whose wait failed with DATA_LOSS gives ",
                            answer.Ok() ? "OK" : answer.Text()));
  trial.Expect(sub.Untouched(trial), "a run whose wait had failed wrote its results");

  // Without signals the outcome is the call's own.
  run.signals.clear();
  const Answer direct = sub.plan->Run(trial, sub.probe.params, run);
  trial.Expect(direct.status == TRINE_DATA_LOSS,
               absl::StrCat("plan_run whose wait failed with DATA_LOSS gives ",
                            direct.Ok() ? "OK" : direct.Text()));
  // The plan itself is as good as ever.
  trial.ExpectOk(sub.plan->Run(trial, sub.probe.params), "plan_run after a failed one");
  trial.Expect(sub.HasRun(trial), "the run after a failed one gave wrong results");
}

void CheckChain(Trial& trial, Bench& bench, Session& s) {
  Submission sub;
  if (!sub.Make(trial, bench, s)) return;
  const TimelinePtr line = s.NewTimeline(trial, 0);
  if (line == nullptr) return;
  for (uint64_t i = 0; i < 20; ++i) {
    RunOptions run;
    run.waits = {{line.get(), i}};
    run.signals = {{line.get(), i + 1}};
    if (!trial.ExpectOk(sub.plan->Run(trial, sub.probe.params, run), "plan_run in a chain")) return;
  }
  trial.ExpectOk(Wait(trial, s, line, 20), "waiting for the end of a chain of runs");
  trial.Expect(sub.HasRun(trial), "a chain of runs gave wrong results");
}

}  // namespace

void RunSubmissionChecks(Bench& bench) {
  const auto run = [&](const char* name, auto check) {
    bench.Run(name, [&bench, check](Trial& trial, Session& s) { check(trial, bench, s); });
  };
  run("submissions/signals", CheckSignals);
  run("submissions/waits", CheckWaits);
  run("submissions/failed-wait", CheckFailedWait);
  run("submissions/chain", CheckChain);
}

}  // namespace trine::conformance
