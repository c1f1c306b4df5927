#include "backends/hip/submissions.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace trine::hip {
namespace {

// The time between two looks at timelines that others signal, while nothing runs on the device.
constexpr std::chrono::microseconds kLook{100};
// The most submissions on the stream: enough to keep it busy, few enough for timely signals.
constexpr size_t kMostRunning = 32;

}  // namespace

// Work that was started on the thread of its caller.
class Submissions::Unwatched : public sdk::UnwatchedWork {
 public:
  Unwatched(Submissions* owner, std::vector<SyncPoint> signals, gpuEvent done)
      : owner_(owner), signals_(std::move(signals)), done_(done) {}
  ~Unwatched() override { owner_->GiveBack(done_); }

  bool Finish(uint64_t timeout_ns) override {
    const auto error = Await(timeout_ns);
    if (!error.has_value()) return false;
    const absl::Status status = owner_->gpu_->Check(*error, "the device's work failed");
    if (settled_.exchange(true)) return true;
    for (const SyncPoint& point : signals_) {
      sdk::Settle(*point.timeline, point.value, static_cast<trine_status>(status.code()),
                  std::string(status.message()));
    }
    return true;
  }

 private:
  // Returns how the work ended; nullopt: it goes on.
  std::optional<gpuError> Await(uint64_t timeout_ns) const {
    // Not InUse: another thread may use the device while this one waits.
    (void)gpuSetDevice(owner_->gpu_->index());
    if (timeout_ns == UINT64_MAX) return gpuEventSynchronize(done_);
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      const gpuError error = gpuEventQuery(done_);
      if (error != gpuErrorNotReady) return error;
      (void)gpuGetLastError();  // clears it, else the next call reports it too
      const auto passed = std::chrono::steady_clock::now() - begin;
      if (passed >= std::chrono::nanoseconds(timeout_ns)) return std::nullopt;
      std::this_thread::sleep_for(kLook);
    }
  }

  Submissions* const owner_;
  const std::vector<SyncPoint> signals_;
  const gpuEvent done_;
  std::atomic<bool> settled_ = false;
};

Submissions::~Submissions() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  const InUse in_use(*gpu_);
  for (const gpuEvent event : ring_) (void)gpuEventDestroy(event);
}

void Submissions::Add(std::vector<SyncPoint> waits, std::vector<SyncPoint> signals,
                      std::function<absl::Status()> start) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    arrived_.push_back({std::move(waits), std::move(signals), std::move(start), nullptr});
    if (!thread_.joinable()) thread_ = std::thread([this] { Serve(); });
  }
  changed_.notify_all();
}

void Submissions::SettleAll(const Submission& submission, trine_status status,
                            const std::string& message) {
  for (const SyncPoint& point : submission.signals) {
    // Work that was on the stream before may have points on the same timeline.
    if (status != TRINE_OK) {
      point.timeline->FinishExpected();
    } else {
      uint64_t value = 0;
      (void)point.timeline->Query(&value, nullptr);  // settles the work that has ended
    }
    sdk::Settle(*point.timeline, point.value, status, message);
  }
}

void Submissions::SettleAll(const Submission& submission, const absl::Status& status) {
  SettleAll(submission, static_cast<trine_status>(status.code()), std::string(status.message()));
}

bool Submissions::IsUnderWay(const SyncPoint& point) const {
  return std::any_of(running_.begin(), running_.end(), [&](const Submission& running) {
    return std::any_of(running.signals.begin(), running.signals.end(), [&](const SyncPoint& s) {
      return s.timeline == point.timeline && s.value >= point.value;
    });
  });
}

Submissions::Readiness Submissions::ReadinessOf(const Submission& submission, trine_status* status,
                                                std::string* message) const {
  Readiness readiness = Readiness::kReady;
  for (const SyncPoint& point : submission.waits) {
    if (IsUnderWay(point) || point.timeline->Expects(point.value)) continue;
    trine_error err{};
    const trine_status reached = point.timeline->Wait(point.value, 0, &err);
    if (reached == TRINE_OK) continue;
    if (reached != TRINE_DEADLINE_EXCEEDED) {
      *status = reached;
      *message = err.message;
      return Readiness::kFailed;
    }
    readiness = Readiness::kNot;
  }
  return readiness;
}

void Submissions::StartOrAdd(std::vector<SyncPoint> waits, std::vector<SyncPoint> signals,
                             std::function<absl::Status()> start) {
  // Work that is on the stream already ends before work that is put there now.
  const bool reached = std::all_of(waits.begin(), waits.end(), [](const SyncPoint& point) {
    return point.timeline->Expects(point.value) ||
           point.timeline->Wait(point.value, 0, nullptr) == TRINE_OK;
  });
  if (!reached) return Add(std::move(waits), std::move(signals), std::move(start));
  const auto done = StartNow(start);
  if (!done.ok()) return SettleAll({{}, std::move(signals), nullptr, nullptr}, done.status());
  const auto work = std::make_shared<Unwatched>(this, signals, *done);
  for (const SyncPoint& point : signals) point.timeline->Expect(point.value, work);
}

absl::StatusOr<gpuEvent> Submissions::StartNow(const std::function<absl::Status()>& start) {
  if (absl::Status status = start(); !status.ok()) return status;
  const InUse in_use(*gpu_);
  const auto event = TakeEvent();
  if (!event.ok()) return event.status();
  absl::Status status =
      gpu_->Check(gpuEventRecord(*event, gpu_->stream()), "an event was not recorded");
  if (status.ok()) return *event;
  GiveBack(*event);
  return status;
}

void Submissions::GiveBack(gpuEvent event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ring_.push_back(event);
}

absl::StatusOr<gpuEvent> Submissions::TakeEvent() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!ring_.empty()) {
      const gpuEvent event = ring_.back();
      ring_.pop_back();
      return event;
    }
  }
  gpuEvent event = nullptr;
  const absl::Status status =
      gpu_->Check(gpuEventCreateUntimed(&event), "an event could not be made");
  if (!status.ok()) return status;
  return event;
}

// Starts the first submission that is ready, or settles one whose waits have failed. Returns false
// if there is neither.
bool Submissions::StartOne() {
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    trine_status why = TRINE_OK;
    std::string message;
    const Readiness readiness = ReadinessOf(*it, &why, &message);
    if (readiness == Readiness::kNot) continue;
    Submission submission = std::move(*it);
    waiting_.erase(it);
    if (readiness == Readiness::kFailed) {
      SettleAll(submission, why, message);
      return true;
    }
    const auto done = StartNow(submission.start);
    if (done.ok()) {
      submission.done = *done;
      running_.push_back(std::move(submission));
    } else {
      SettleAll(submission, done.status());
    }
    return true;
  }
  return false;
}

void Submissions::FinishOldest() {
  Submission submission = std::move(running_.front());
  running_.pop_front();
  // Not InUse: another thread may use the device while this one waits.
  (void)gpuSetDevice(gpu_->index());
  const absl::Status status =
      gpu_->Check(gpuEventSynchronize(submission.done), "the device's work failed");
  GiveBack(submission.done);
  SettleAll(submission, status);
}

void Submissions::Serve() {
  for (;;) {
    bool ending = false;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto something = [&] { return !arrived_.empty() || ending_; };
      if (running_.empty() && waiting_.empty()) {
        changed_.wait(lock, something);
      }
      std::move(arrived_.begin(), arrived_.end(), std::back_inserter(waiting_));
      arrived_.clear();
      ending = ending_;
    }
    // Without the lock, because looking at a timeline may give an event back.
    if (ending && running_.empty() &&
        !std::any_of(waiting_.begin(), waiting_.end(), [&](const Submission& s) {
          trine_status status;
          std::string message;
          return ReadinessOf(s, &status, &message) != Readiness::kNot;
        })) {
      break;
    }
    if (running_.size() < kMostRunning && StartOne()) continue;
    if (!running_.empty()) {
      FinishOldest();
      continue;
    }
    if (waiting_.empty()) continue;
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, kLook, [&] { return !arrived_.empty() || ending_; });
  }
  for (const Submission& submission : waiting_) {
    SettleAll(submission, TRINE_CANCELLED, "the device was closed");
  }
}

}  // namespace trine::hip
