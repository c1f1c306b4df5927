// submissions: waits and signals of plan_run and copy_run.
#include <atomic>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/sections.h"
#include "plugins/conformance/submission.h"

namespace trine::conformance {
namespace {

using Clock = std::chrono::steady_clock;
using Result = Submission::Result;
constexpr uint64_t kLong = 10'000'000'000;
// For a submission to get to where it waits, or to show that it does not. Too short and a fault may
// pass; nothing sound fails.
constexpr std::chrono::milliseconds kGrace{50};

Answer Wait(Trial& trial, Session& s, const TimelinePtr& timeline, uint64_t value,
            uint64_t timeout_ns = kLong) {
  return trial.Call("timeline_wait", [&](trine_error* err) {
    return s.table().timeline_wait(timeline.get(), value, timeout_ns, err);
  });
}

void CheckSignals(Trial& trial, Session& s, Submission& work) {
  const TimelinePtr a = s.NewTimeline(trial, 0), b = s.NewTimeline(trial, 10);
  if (a == nullptr || b == nullptr) return;
  RunOptions run;
  run.signals = {{a.get(), 1}, {b.get(), 20}};
  run.padding = 24;
  if (!trial.ExpectOk(work.Submit(trial, run), absl::StrCat(work.call(), " with two signals"))) {
    return;  // its signals may never come
  }
  trial.ExpectOk(Wait(trial, s, a, 1),
                 absl::StrCat("waiting for ", work.call(), "'s first signal"));
  trial.ExpectOk(Wait(trial, s, b, 20),
                 absl::StrCat("waiting for ", work.call(), "'s second signal"));
  trial.Expect(work.Look(trial) == Result::kOfTrueInputs,
               absl::StrCat(work.call(), " signalled before its results were there"));
}

// Submitted over false inputs while the gate is closed; the true ones are written, then the gate
// opens. Whoever reads early reads the false ones.
void CheckGate(Trial& trial, Session& s, Submission& work, bool with_signal) {
  const TimelinePtr gate = s.NewTimeline(trial, 0), done = s.NewTimeline(trial, 0);
  if (gate == nullptr || done == nullptr || !work.WriteInputs(trial, false)) return;
  RunOptions run;
  run.waits = {{gate.get(), 4}};
  if (with_signal) run.signals = {{done.get(), 1}};
  const std::string what =
      absl::StrCat(work.call(), with_signal ? " with" : " without", " signals");

  // The call may block until the gate opens. A trial belongs to one thread.
  std::atomic<bool> entered{false}, returned{false};
  Answer answer;
  std::thread submitter([&] {
    QuietSink quiet;
    Trial aside(&quiet);
    entered = true;
    answer = work.Submit(aside, run);
    returned = true;
  });
  while (!entered) std::this_thread::yield();
  const auto until = Clock::now() + kGrace;
  while (!returned && Clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const bool early = with_signal ? Wait(trial, s, done, 1, 0).Ok() : returned.load();
  work.WriteInputs(trial, true);
  s.table().timeline_signal(gate.get(), 4, nullptr);
  submitter.join();

  if (answer.status == kThrew) return trial.FailThrown(work.call());
  if (!trial.ExpectOk(answer, absl::StrCat(what, ", waiting for a point"))) return;
  if (!trial.Expect(!early,
                    absl::StrCat(what, " did not wait: done before its wait was reached"))) {
    return;
  }
  if (with_signal)
    trial.ExpectOk(Wait(trial, s, done, 1), "waiting for work whose wait was reached");
  switch (work.Look(trial)) {
    case Result::kOfTrueInputs:
      return;
    case Result::kOfFalseInputs:
      return trial.Fail(absl::StrCat(what, " read its inputs before its wait was reached"));
    case Result::kNone:
    case Result::kNeither:
      return trial.Fail(absl::StrCat(what, " gave wrong results after it had to wait"));
  }
}

void CheckWaits(Trial& trial, Session& s, Submission& work) {
  CheckGate(trial, s, work, /*with_signal=*/true);
  if (!trial.failed()) CheckGate(trial, s, work, /*with_signal=*/false);
}

void CheckFailedWait(Trial& trial, Session& s, Submission& work) {
  const TimelinePtr gate = s.NewTimeline(trial, 0), done = s.NewTimeline(trial, 0);
  if (gate == nullptr || done == nullptr) return;
  s.table().timeline_fail(gate.get(), TRINE_DATA_LOSS, "lost upstream", nullptr);
  RunOptions run;
  run.waits = {{gate.get(), 1}};
  run.signals = {{done.get(), 1}};
  const std::string what = absl::StrCat(work.call(), " whose wait failed with DATA_LOSS");
  // With signals the outcome is theirs: the failure as it was.
  if (!trial.ExpectOk(work.Submit(trial, run), absl::StrCat(what, ", with signals"))) return;
  const Answer answer = Wait(trial, s, done, 1);
  trial.Expect(answer.status == TRINE_DATA_LOSS,
               absl::StrCat("the signal of ", what, " gives ", answer.Ok() ? "OK" : answer.Text()));
  trial.Expect(answer.message.find("lost upstream") != std::string::npos,
               absl::StrCat("the signal of ", what, " lost its message: ", answer.Text()));
  trial.Expect(work.Look(trial) == Result::kNone, absl::StrCat(what, " wrote its results"));

  // Without signals the caller must not take somebody else's failure for this device's own.
  run.signals.clear();
  trial.ExpectRefused(work.Submit(trial, run), absl::StrCat(what, ", without signals"),
                      {TRINE_ABORTED});
  trial.Expect(work.Look(trial) == Result::kNone,
               absl::StrCat(what, ", without signals, wrote its results"));
  // The device is as good as ever.
  trial.ExpectOk(work.Submit(trial, {}), absl::StrCat(work.call(), " after a failed one"));
  trial.Expect(work.Look(trial) == Result::kOfTrueInputs,
               absl::StrCat(work.call(), " after a failed one gave wrong results"));
}

void CheckChain(Trial& trial, Session& s, Submission& work) {
  const TimelinePtr line = s.NewTimeline(trial, 0);
  if (line == nullptr) return;
  for (uint64_t i = 0; i < 20; ++i) {
    RunOptions run;
    run.waits = {{line.get(), i}};
    run.signals = {{line.get(), i + 1}};
    if (!trial.ExpectOk(work.Submit(trial, run), absl::StrCat(work.call(), " in a chain"))) return;
  }
  trial.ExpectOk(Wait(trial, s, line, 20), "waiting for the end of a chain");
  trial.Expect(work.Look(trial) == Result::kOfTrueInputs,
               absl::StrCat("a chain of ", work.call(), " gave wrong results"));
}

}  // namespace

void RunSubmissionChecks(Bench& bench) {
  const auto run = [&](const char* name, auto make, auto check) {
    bench.Run(name, [&bench, make, check](Trial& trial, Session& s) {
      const std::unique_ptr<Submission> work = make(trial, bench, s);
      if (work != nullptr) check(trial, s, *work);
    });
  };
  run("submissions/signals", Submission::OfPlan, CheckSignals);
  run("submissions/waits", Submission::OfPlan, CheckWaits);
  run("submissions/failed-wait", Submission::OfPlan, CheckFailedWait);
  run("submissions/chain", Submission::OfPlan, CheckChain);
  run("submissions/copy-signals", Submission::OfCopy, CheckSignals);
  run("submissions/copy-waits", Submission::OfCopy, CheckWaits);
  run("submissions/copy-failed-wait", Submission::OfCopy, CheckFailedWait);
  run("submissions/copy-chain", Submission::OfCopy, CheckChain);
}

}  // namespace trine::conformance
