// Section timelines: values that only grow, failures that stay.
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/checks/sections.h"

namespace trine::conformance {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kLongWait = 10'000 * kMillisecond;

// Makes calls on one timeline.
class CheckedTimeline {
 public:
  CheckedTimeline(Trial& trial, Session& s, uint64_t initial)
      : trial_(trial), s_(s), timeline_(s.NewTimeline(trial, initial)) {}

  bool ok() const { return timeline_ != nullptr; }
  Answer Signal(uint64_t value) {
    return s_.Call(trial_, "timeline_signal", &trine_plugin::timeline_signal, get(), value);
  }
  Answer Fail(trine_status status, const char* message) {
    return s_.Call(trial_, "timeline_fail", &trine_plugin::timeline_fail, get(), status, message);
  }
  Answer Wait(uint64_t value, uint64_t timeout_ns) {
    return s_.Wait(trial_, get(), value, timeout_ns);
  }
  Answer Query(uint64_t* value) {
    return s_.Call(trial_, "timeline_query", &trine_plugin::timeline_query, get(), value);
  }
  trine_timeline* get() { return timeline_.get(); }

 private:
  Trial& trial_;
  Session& s_;
  TimelinePtr timeline_;
};

void CheckValues(Trial& trial, Session& s) {
  CheckedTimeline line(trial, s, 7);
  if (!line.ok()) return;
  uint64_t value = 0;
  trial.ExpectOk(line.Query(&value), "timeline_query");
  trial.Expect(value == 7, absl::StrCat("a timeline created at 7 stands at ", value));
  trial.ExpectOk(line.Wait(7, 0), "waiting for a value that is reached");
  trial.ExpectOk(line.Signal(9), "timeline_signal");
  trial.ExpectOk(line.Wait(8, 0), "waiting for a value that was passed");
  trial.ExpectOk(line.Signal(uint64_t{1} << 40), "timeline_signal of a large value");
  trial.ExpectOk(line.Query(&value), "timeline_query");
  trial.Expect(value == uint64_t{1} << 40, "timeline_query does not show what was signalled");
}

void CheckBackwards(Trial& trial, Session& s) {
  CheckedTimeline line(trial, s, 7);
  if (!line.ok()) return;
  trial.ExpectRefused(line.Signal(6), "signalling a timeline backwards");
  uint64_t value = 0;
  trial.ExpectOk(line.Query(&value), "timeline_query");
  trial.Expect(value == 7, absl::StrCat("a timeline at 7 went back to ", value));
}

void CheckTimeouts(Trial& trial, Session& s) {
  CheckedTimeline line(trial, s, 0);
  if (!line.ok()) return;
  trial.ExpectRefused(line.Wait(1, 0), "polling for a value that is not reached",
                      {TRINE_DEADLINE_EXCEEDED});
  const auto start = Clock::now();
  trial.ExpectRefused(line.Wait(1, 50 * kMillisecond), "a wait of 50 ms for a value never reached",
                      {TRINE_DEADLINE_EXCEEDED});
  const auto took = std::chrono::duration<double>(Clock::now() - start).count();
  trial.Expect(took > 0.045 && took < 5, absl::StrCat("a wait of 50 ms took ", took, " seconds"));
}

void CheckWake(Trial& trial, Session& s) {
  CheckedTimeline line(trial, s, 0);
  if (!line.ok()) return;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    s.table().timeline_signal(line.get(), 3, nullptr);
  });
  trial.ExpectOk(line.Wait(3, kLongWait), "waiting for a value another thread signals");
  other.join();
}

void CheckFailure(Trial& trial, Session& s) {
  CheckedTimeline line(trial, s, 2);
  if (!line.ok()) return;
  trial.ExpectOk(line.Fail(TRINE_DATA_LOSS, "the cat sat on it"), "timeline_fail");
  for (int i = 0; i < 2; ++i) {  // twice: the failure stays
    const Answer answer = line.Wait(3, kLongWait);
    trial.Expect(answer.status == TRINE_DATA_LOSS,
                 absl::StrCat("waiting for a point beyond a failure with DATA_LOSS gives ",
                              answer.Ok() ? "OK" : answer.Text()));
    trial.Expect(answer.message.find("the cat sat on it") != std::string::npos,
                 absl::StrCat("a failed timeline lost its message: ", answer.Text()));
  }
  trial.ExpectOk(line.Wait(2, 0), "waiting for a point reached before the failure");
  uint64_t value = 0;
  line.Query(&value);
  trial.Expect(value == 2, absl::StrCat("a timeline that failed at 2 stands at ", value));
  const Answer signalled = line.Signal(9);
  trial.Expect(!signalled.Ok(), "a failed timeline could be signalled");
  trial.Expect(!line.Wait(9, 0).Ok(), "a failed timeline went on");
  line.Fail(TRINE_ABORTED, "second");
  trial.Expect(line.Wait(3, 0).status == TRINE_DATA_LOSS, "a second failure replaced the first");
}

// A timeline can't fail with a status that means "reached" or "not yet reached" to a waiter.
void CheckNoFailure(Trial& trial, Session& s) {
  CheckedTimeline line(trial, s, 2);
  if (!line.ok()) return;
  for (trine_status status : {TRINE_OK, TRINE_DEADLINE_EXCEEDED}) {
    trial.ExpectRefused(line.Fail(status, "no failure"),
                        absl::StrCat("timeline_fail with ", StatusName(status)),
                        {TRINE_INVALID_ARGUMENT});
  }
  trial.ExpectOk(line.Signal(3), "timeline_signal after a failure that was refused");
}

void CheckFailureWakes(Trial& trial, Session& s) {
  CheckedTimeline line(trial, s, 0);
  if (!line.ok()) return;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    s.table().timeline_fail(line.get(), TRINE_ABORTED, "stop", nullptr);
  });
  const Answer answer = line.Wait(3, kLongWait);
  other.join();
  trial.Expect(answer.status == TRINE_ABORTED,
               absl::StrCat("a wait whose timeline fails with ABORTED gives ",
                            answer.Ok() ? "OK" : answer.Text()));
}

}  // namespace

void RunTimelineChecks(Bench& bench) {
  bench.Run("timelines/values", CheckValues);
  bench.Run("timelines/never-backwards", CheckBackwards);
  bench.Run("timelines/timeouts", CheckTimeouts);
  bench.Run("timelines/wakes-waiter", CheckWake);
  bench.Run("timelines/failure-stays", CheckFailure);
  bench.Run("timelines/no-failure", CheckNoFailure);
  bench.Run("timelines/failure-wakes-waiter", CheckFailureWakes);
}

}  // namespace trine::conformance
