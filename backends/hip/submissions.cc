#include "backends/hip/submissions.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace trine::hip {
namespace {

// The time between two looks at timelines that others signal, while nothing runs on the device.
constexpr std::chrono::microseconds kLook{100};
// The most submissions on the stream: enough to keep it busy, few enough for timely signals.
constexpr size_t kMostRunning = 32;

}  // namespace

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
    if (IsUnderWay(point)) continue;
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

absl::StatusOr<gpuEvent> Submissions::TakeEvent() {
  if (!ring_.empty()) {
    const gpuEvent event = ring_.back();
    ring_.pop_back();
    return event;
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
    absl::Status status = submission.start();
    if (status.ok()) {
      const InUse in_use(*gpu_);
      auto event = TakeEvent();
      status = event.status();
      if (status.ok()) {
        submission.done = *event;
        status = gpu_->Check(gpuEventRecord(*event, gpu_->stream()), "an event was not recorded");
      }
    }
    if (status.ok()) {
      running_.push_back(std::move(submission));
    } else {
      SettleAll(submission, status);
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
  ring_.push_back(submission.done);
  SettleAll(submission, status);
}

void Submissions::Serve() {
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto something = [&] { return !arrived_.empty() || ending_; };
      if (running_.empty() && waiting_.empty()) {
        changed_.wait(lock, something);
      }
      std::move(arrived_.begin(), arrived_.end(), std::back_inserter(waiting_));
      arrived_.clear();
      if (ending_ && running_.empty() &&
          !std::any_of(waiting_.begin(), waiting_.end(), [&](const Submission& s) {
            trine_status status;
            std::string message;
            return ReadinessOf(s, &status, &message) != Readiness::kNot;
          })) {
        break;
      }
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
