// A timeline that host threads signal, for devices that run synchronously, and for devices whose
// work ends without a thread that watches it. Thread-safe.
#ifndef TRINE_SDK_TIMELINE_H_
#define TRINE_SDK_TIMELINE_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "trine/sdk/status.h"

namespace trine::sdk {

// Work that a device has begun, and whose end no thread watches. A thread that asks a timeline for
// one of the work's points looks whether the work has ended, and then settles the points.
class UnwatchedWork {
 public:
  virtual ~UnwatchedWork() = default;
  // Waits for the end of the work, but no longer than the time (UINT64_MAX: for ever; 0 only
  // looks). Returns false if the work goes on. Otherwise settles all points of the work, unless
  // another thread does. Any thread may call, several at a time.
  // While a thread waits here, it does not notice what others do to the timeline.
  virtual bool Finish(uint64_t timeout_ns) = 0;
};

// A value that only grows, and threads that wait for it.
class Timeline {
 public:
  explicit Timeline(uint64_t initial) : value_(initial) {}

  // Says that work settles the point. Works are expected in the order in which they end.
  void Expect(uint64_t value, std::shared_ptr<UnwatchedWork> work) {
    std::lock_guard<std::mutex> lock(mutex_);
    while (!expected_.empty() && Settled(expected_.front().value)) expected_.pop_front();
    if (Settled(value)) return;
    expected_.push_back({value, std::move(work)});
    changed_.notify_all();
  }
  // Returns whether work that is going to reach the point is expected.
  bool Expects(uint64_t value) {
    std::lock_guard<std::mutex> lock(mutex_);
    return failure_ == TRINE_OK &&
           std::any_of(expected_.begin(), expected_.end(),
                       [&](const Expected& expected) { return expected.value >= value; });
  }

  trine_status Signal(uint64_t value, trine_error* err) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (failure_ != TRINE_OK) return Fail(err, failure_, message_);
    if (value <= value_) return Fail(err, TRINE_INVALID_ARGUMENT, "a timeline's value only grows");
    value_ = value;
    changed_.notify_all();
    return TRINE_OK;
  }

  // Fails the timeline. The first failure stays; later ones are ignored.
  trine_status SetFailed(trine_status status, const std::string& message, trine_error* err) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (status == TRINE_OK || status == TRINE_DEADLINE_EXCEEDED) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "OK and DEADLINE_EXCEEDED are no failures");
    }
    if (failure_ != TRINE_OK) return TRINE_OK;
    failure_ = status;
    message_ = message.empty() ? "failed; no reason was given" : message;
    changed_.notify_all();
    return TRINE_OK;
  }

  trine_status Wait(uint64_t value, uint64_t timeout_ns, trine_error* err) {
    // A longer timeout might overflow the clock, so it is taken as "for ever".
    constexpr uint64_t kForever = 86'400'000'000'000;
    const bool forever = timeout_ns >= kForever;
    const Clock::time_point end =
        forever ? Clock::time_point::max() : Clock::now() + std::chrono::nanoseconds(timeout_ns);
    std::unique_lock<std::mutex> lock(mutex_);
    const auto changed = [&] { return Settled(value) || !expected_.empty(); };
    bool looked = false;  // the time may be over before the first look
    while (!Settled(value)) {
      if (!expected_.empty()) {
        if (!FinishFirst(&lock, forever ? UINT64_MAX : NanosecondsUntil(end))) break;
      } else if (forever) {
        changed_.wait(lock, changed);
      } else if (std::exchange(looked, true) && Clock::now() >= end) {
        break;
      } else {
        changed_.wait_until(lock, end, changed);
      }
    }
    if (!Settled(value)) {
      return Fail(err, TRINE_DEADLINE_EXCEEDED, "the timeline has not reached the point in time");
    }
    return value_ >= value ? TRINE_OK : Fail(err, failure_, message_);
  }

  // Waits for the end of all work that is expected. To fail the timeline before would say that work
  // has failed that goes on.
  void FinishExpected() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!expected_.empty() && FinishFirst(&lock, UINT64_MAX)) {
    }
  }

  trine_status Query(uint64_t* value, trine_error* err) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!expected_.empty() && FinishFirst(&lock, 0)) {
    }
    *value = value_;
    return failure_ == TRINE_OK ? TRINE_OK : Fail(err, failure_, message_);
  }

 private:
  struct Expected {
    uint64_t value = 0;
    std::shared_ptr<UnwatchedWork> work;
  };

  using Clock = std::chrono::steady_clock;
  static uint64_t NanosecondsUntil(Clock::time_point end) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now());
    return static_cast<uint64_t>(std::max<int64_t>(left.count(), 0));
  }

  bool Settled(uint64_t value) const { return value_ >= value || failure_ != TRINE_OK; }

  // Finishes the first work that is expected, with the lock released. Returns false if it goes on.
  bool FinishFirst(std::unique_lock<std::mutex>* lock, uint64_t timeout_ns) {
    const std::shared_ptr<UnwatchedWork> work = expected_.front().work;
    if (!Settled(expected_.front().value)) {
      lock->unlock();
      const bool ended = work->Finish(timeout_ns);
      lock->lock();
      if (!ended) return false;
    }
    if (!expected_.empty() && expected_.front().work == work) expected_.pop_front();
    return true;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t value_;
  trine_status failure_ = TRINE_OK;
  std::string message_;
  std::deque<Expected> expected_;
};

// Refuses waits and signals that are null or have no timeline, and signals of values that their
// timelines have already reached. `timeline_of` maps a trine_timeline* to its Timeline&.
template <class TimelineOf>
trine_status CheckSync(const trine_sync& sync, TimelineOf timeline_of, trine_error* err) {
  if ((sync.waits == nullptr && sync.n_waits != 0) ||
      (sync.signals == nullptr && sync.n_signals != 0)) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "the waits or signals are null");
  }
  for (uint32_t i = 0; i < sync.n_waits; ++i) {
    if (At(sync.waits, sync.point_stride, i).timeline == nullptr) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "a wait has no timeline");
    }
  }
  for (uint32_t i = 0; i < sync.n_signals; ++i) {
    const trine_point p = At(sync.signals, sync.point_stride, i);
    if (p.timeline == nullptr) return Fail(err, TRINE_INVALID_ARGUMENT, "a signal has no timeline");
    uint64_t value = 0;
    if (timeline_of(p.timeline).Query(&value, nullptr) == TRINE_OK && p.value <= value) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "a timeline's value only grows");
    }
  }
  return TRINE_OK;
}

// Ends a submission on one of its signals: signals the point or, if the work failed, fails the
// timeline with `status` and `message`.
inline void Settle(Timeline& timeline, uint64_t value, trine_status status,
                   const std::string& message) {
  trine_error late{};  // set if the timeline has already passed the point, or failed
  const trine_status outcome = status == TRINE_OK ? timeline.Signal(value, &late) : status;
  if (outcome == TRINE_OK) return;
  // DEADLINE_EXCEEDED would tell waiters that the point is not reached yet.
  const trine_status failure = outcome == TRINE_DEADLINE_EXCEEDED ? TRINE_INTERNAL : outcome;
  timeline.SetFailed(failure, status == TRINE_OK ? late.message : message, nullptr);
}

// Submits synchronously: waits, runs `body` (which returns trine_status and may fill its error),
// and settles the signals. If there are signals, they carry the outcome and the call returns OK;
// otherwise the call returns the outcome. Refuses impossible points before anything runs.
template <class TimelineOf, class Body>
trine_status SubmitSynchronously(const trine_sync& sync, TimelineOf timeline_of, trine_error* err,
                                 Body body) {
  const trine_status checked = CheckSync(sync, timeline_of, err);
  if (checked != TRINE_OK) return checked;
  trine_error own{};
  trine_status status = TRINE_OK;
  for (uint32_t i = 0; i < sync.n_waits && status == TRINE_OK; ++i) {
    const trine_point p = At(sync.waits, sync.point_stride, i);
    status = timeline_of(p.timeline).Wait(p.value, UINT64_MAX, &own);
  }
  // A failed wait is another submission's failure. Signals pass it on as it is; without signals it
  // becomes ABORTED, so that the caller does not take it for this device's own.
  if (status != TRINE_OK && sync.n_signals == 0) {
    return Fail(err, TRINE_ABORTED, std::string("a wait has failed: ") + own.message);
  }
  if (status == TRINE_OK) status = Guard(&own, [&] { return body(&own); });
  for (uint32_t i = 0; i < sync.n_signals; ++i) {
    const trine_point p = At(sync.signals, sync.point_stride, i);
    Settle(timeline_of(p.timeline), p.value, status, own.message);
  }
  if (sync.n_signals != 0) return TRINE_OK;
  return status == TRINE_OK ? TRINE_OK : Fail(err, status, own.message);
}

// Holds the table's timeline calls. `Handle` is the plugin's trine_timeline, derived from Timeline.
template <class Handle>
struct TimelineCalls {
  static trine_status Create(trine_device*, uint64_t initial, Handle** out, trine_error* err) {
    return Guard(err, [&]() -> trine_status {
      *out = new Handle(initial);
      return TRINE_OK;
    });
  }
  static void Destroy(Handle* t) { delete t; }
  static trine_status Signal(Handle* t, uint64_t value, trine_error* err) {
    return Guard(err, [&] { return t->Signal(value, err); });
  }
  static trine_status SetFailed(Handle* t, trine_status status, const char* message,
                                trine_error* err) {
    return Guard(err, [&] { return t->SetFailed(status, message != nullptr ? message : "", err); });
  }
  static trine_status Wait(Handle* t, uint64_t value, uint64_t timeout_ns, trine_error* err) {
    return Guard(err, [&] { return t->Wait(value, timeout_ns, err); });
  }
  static trine_status Query(Handle* t, uint64_t* value, trine_error* err) {
    return Guard(err, [&] { return t->Query(value, err); });
  }
};

}  // namespace trine::sdk

#endif  // TRINE_SDK_TIMELINE_H_
