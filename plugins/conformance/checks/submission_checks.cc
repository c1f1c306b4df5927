// Section submissions: waits and signals of plan_run and copy_run.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/cases/oracle.h"
#include "plugins/conformance/checks/sections.h"

namespace trine::conformance {
namespace {

// Work that checks submit with waits and signals: a plan's run, or a copy. Has two sets of inputs:
// the true ones, which it is created with, and the false ones. The results tell which was read.
class Submission {
 public:
  enum class Result { kNone, kOfTrueInputs, kOfFalseInputs, kNeither };

  // Returns null with the failure, or the reason to skip the check, noted in the trial.
  static std::unique_ptr<Submission> OfPlan(Trial& trial, Bench& bench, Session& s);
  static std::unique_ptr<Submission> OfCopy(Trial& trial, Bench& bench, Session& s);
  virtual ~Submission() = default;

  virtual const char* call() const = 0;  // "plan_run" or "copy_run"
  // Submits with the waits, signals and padding of `options`.
  virtual Answer Submit(Trial& trial, const RunOptions& options) = 0;
  virtual bool WriteInputs(Trial& trial, bool true_ones) = 0;
  // Reads the results. kNone: nothing was written. REQUIRES: the true inputs are in place.
  virtual Result Look(Trial& trial) = 0;
};

// Runs the probe graph once. The false inputs are the true ones, rotated by one value.
class PlanRun : public Submission {
 public:
  explicit PlanRun(OpCase probe) : probe_(std::move(probe)) {}

  bool Make(Trial& trial, Session& s) {
    const GraphSpec& graph = probe_.graph;
    Images false_images = probe_.images;
    true_inputs_.resize(probe_.images.size());
    false_inputs_.resize(probe_.images.size());
    for (uint32_t slot = 0; slot < probe_.images.size(); ++slot) {
      if (graph.slots[slot].role != TRINE_ROLE_IO || graph.Writes(slot)) continue;
      Bytes& image = false_images[slot];
      std::rotate(image.begin(), image.begin() + sizeof(float), image.end());
      true_inputs_[slot] = probe_.images[slot];
      false_inputs_[slot] = image;
    }
    of_true_ = RunOracle(graph, probe_.params, probe_.images);
    const Expected other = RunOracle(graph, probe_.params, false_images);
    // Only the outputs tell which inputs were read.
    of_false_ = of_true_;
    for (uint32_t slot = 0; slot < probe_.images.size(); ++slot) {
      if (!graph.Writes(slot)) continue;
      of_false_.contract[slot] = other.contract[slot];
      if (!other.unrounded.empty()) of_false_.unrounded[slot] = other.unrounded[slot];
    }
    plan_ = DevicePlan::Create(trial, s, graph, probe_.images);
    return plan_ != nullptr;
  }

  const char* call() const override { return "plan_run"; }
  Answer Submit(Trial& trial, const RunOptions& options) override {
    return plan_->Run(trial, probe_.params, options);
  }
  bool WriteInputs(Trial& trial, bool true_ones) override {
    return plan_->Upload(trial, true_ones ? true_inputs_ : false_inputs_);
  }
  Result Look(Trial& trial) override {
    Images got;
    if (!plan_->Download(trial, &got)) return Result::kNeither;
    if (got == probe_.images) return Result::kNone;
    const auto holds = [&](const Expected& expected) {
      return CompareResults(probe_.graph, probe_.params, expected, got).empty();
    };
    return holds(of_true_)    ? Result::kOfTrueInputs
           : holds(of_false_) ? Result::kOfFalseInputs
                              : Result::kNeither;
  }

 private:
  OpCase probe_;
  Images true_inputs_, false_inputs_;  // empty for slots that are no inputs
  Expected of_true_, of_false_;
  std::unique_ptr<DevicePlan> plan_;
};

// Copies one buffer to another.
class BufferCopy : public Submission {
 public:
  static constexpr size_t kBytes = 4096;

  explicit BufferCopy(Session& s) : s_(s) {}

  bool Make(Trial& trial) {
    from_ = s_.Alloc(trial, kBytes);
    to_ = s_.Alloc(trial, kBytes);
    return from_ != nullptr && to_ != nullptr && WriteInputs(trial, true) &&
           trial.ExpectOk(s_.Write(trial, to_.get(), 0, Bytes(kBytes, kGarbage).data(), kBytes),
                          "buffer_write");
  }

  const char* call() const override { return "copy_run"; }
  Answer Submit(Trial& trial, const RunOptions& options) override {
    const PackedSync sync(options);
    return Copy(trial, s_, {{{from_.get(), nullptr, 0}, {to_.get(), nullptr, 0}, kBytes}},
                sync.get());
  }
  bool WriteInputs(Trial& trial, bool true_ones) override {
    return trial.ExpectOk(s_.Write(trial, from_.get(), 0, Input(true_ones).data(), kBytes),
                          "buffer_write");
  }
  Result Look(Trial& trial) override {
    Bytes got(kBytes);
    trial.ExpectOk(s_.Read(trial, to_.get(), 0, got.data(), kBytes), "buffer_read");
    return got == Input(true)               ? Result::kOfTrueInputs
           : got == Input(false)            ? Result::kOfFalseInputs
           : got == Bytes(kBytes, kGarbage) ? Result::kNone
                                            : Result::kNeither;
  }

 private:
  static Bytes Input(bool true_ones) {
    return Bytes(kBytes, true_ones ? std::byte{0x11} : std::byte{0xEE});
  }

  Session& s_;
  BufferPtr from_, to_;
};

std::unique_ptr<Submission> Submission::OfPlan(Trial& trial, Bench& bench, Session& s) {
  std::optional<OpCase> probe = bench.Probe(trial, s);
  if (!probe) return nullptr;
  auto run = std::make_unique<PlanRun>(std::move(*probe));
  return run->Make(trial, s) ? std::move(run) : nullptr;
}

std::unique_ptr<Submission> Submission::OfCopy(Trial& trial, Bench&, Session& s) {
  auto copy = std::make_unique<BufferCopy>(s);
  return copy->Make(trial) ? std::move(copy) : nullptr;
}

using Clock = std::chrono::steady_clock;
using Result = Submission::Result;
constexpr uint64_t kLong = 10'000'000'000;
// How long a submission may take to reach its wait, or to show that it does not wait. When this is
// too short, a faulty plugin may pass; a sound one never fails.
constexpr std::chrono::milliseconds kGrace{50};

Answer Wait(Trial& trial, Session& s, const TimelinePtr& timeline, uint64_t value,
            uint64_t timeout_ns = kLong) {
  return s.Wait(trial, timeline.get(), value, timeout_ns);
}

void CheckSignals(Trial& trial, Session& s, Submission& work) {
  const TimelinePtr a = s.NewTimeline(trial, 0), b = s.NewTimeline(trial, 10);
  if (a == nullptr || b == nullptr) return;
  RunOptions run;
  run.signals = {{a.get(), 1}, {b.get(), 20}};
  run.padding = 24;
  if (!trial.ExpectOk(work.Submit(trial, run), absl::StrCat(work.call(), " with two signals"))) {
    return;  // the signals may never come
  }
  trial.ExpectOk(Wait(trial, s, a, 1),
                 absl::StrCat("waiting for ", work.call(), "'s first signal"));
  trial.ExpectOk(Wait(trial, s, b, 20),
                 absl::StrCat("waiting for ", work.call(), "'s second signal"));
  trial.Expect(work.Look(trial) == Result::kOfTrueInputs,
               absl::StrCat(work.call(), " signalled before its results were there"));
}

// Submits over false inputs while the gate is closed, writes the true inputs, then opens the gate.
// A plugin that reads too early reads the false ones.
void CheckGate(Trial& trial, Session& s, Submission& work, bool with_signal) {
  const TimelinePtr gate = s.NewTimeline(trial, 0), done = s.NewTimeline(trial, 0);
  if (gate == nullptr || done == nullptr || !work.WriteInputs(trial, false)) return;
  RunOptions run;
  run.waits = {{gate.get(), 4}};
  if (with_signal) run.signals = {{done.get(), 1}};
  const std::string what =
      absl::StrCat(work.call(), with_signal ? " with" : " without", " signals");

  // The call may block until the gate opens, so it needs its own thread and trial.
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
  // With signals the call succeeds, and the signals fail with the same status.
  if (!trial.ExpectOk(work.Submit(trial, run), absl::StrCat(what, ", with signals"))) return;
  const Answer answer = Wait(trial, s, done, 1);
  trial.Expect(answer.status == TRINE_DATA_LOSS,
               absl::StrCat("the signal of ", what, " gives ", answer.Ok() ? "OK" : answer.Text()));
  trial.Expect(answer.message.find("lost upstream") != std::string::npos,
               absl::StrCat("the signal of ", what, " lost its message: ", answer.Text()));
  trial.Expect(work.Look(trial) == Result::kNone, absl::StrCat(what, " wrote its results"));

  // Without signals the call returns ABORTED: the failure is not this device's own.
  run.signals.clear();
  trial.ExpectRefused(work.Submit(trial, run), absl::StrCat(what, ", without signals"),
                      {TRINE_ABORTED});
  trial.Expect(work.Look(trial) == Result::kNone,
               absl::StrCat(what, ", without signals, wrote its results"));
  // The device still works.
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
