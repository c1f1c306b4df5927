// Runs work that has signals while the caller continues. Each device has one thread for that.
//
// Work whose waits are reached may begin on the caller's thread instead, because the thread of the
// device would have to be woken first: where all processors are busy, that takes longer than the
// work. Then no thread watches the work. Whoever asks its timelines looks whether it has ended.
//
// The device's thread starts submissions whose waits are reached, in the order of arrival. A wait
// for work that is already on the stream is taken as reached, because a stream keeps its order.
// After each start the thread records an event; when the event has passed, it sets the submission's
// signals.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "backends/hip/gpu_device.h"
#include "trine/backend_sdk.h"

namespace trine::hip {

// A point of a timeline. The caller of Add keeps the timeline alive.
struct SyncPoint {
  sdk::Timeline* timeline = nullptr;
  uint64_t value = 0;
};

class Submissions {
 public:
  // The device must outlive this object.
  explicit Submissions(GpuDevice* gpu) : gpu_(gpu) {}
  // Finishes all work that runs or can be started. Submissions that still wait then fail with
  // CANCELLED.
  ~Submissions();

  // Submits work: `start` puts it on the device's stream, or does it. Any thread may call.
  void Add(std::vector<SyncPoint> waits, std::vector<SyncPoint> signals,
           std::function<absl::Status()> start);
  // Submits work that `start` puts on the device's stream. Starts it on the calling thread if its
  // waits are reached.
  void StartOrAdd(std::vector<SyncPoint> waits, std::vector<SyncPoint> signals,
                  std::function<absl::Status()> start);

 private:
  class Unwatched;
  struct Submission {
    std::vector<SyncPoint> waits, signals;
    std::function<absl::Status()> start;
    gpuEvent done = nullptr;  // an event of the ring, once started
  };
  enum class Readiness { kNot, kReady, kFailed };

  void Serve();
  bool StartOne();
  void FinishOldest();
  Readiness ReadinessOf(const Submission& submission, trine_status* status,
                        std::string* message) const;
  bool IsUnderWay(const SyncPoint& point) const;
  // Puts the work on the stream, with an event behind it.
  absl::StatusOr<gpuEvent> StartNow(const std::function<absl::Status()>& start);
  absl::StatusOr<gpuEvent> TakeEvent();
  void GiveBack(gpuEvent event);
  static void SettleAll(const Submission& submission, trine_status status,
                        const std::string& message);
  static void SettleAll(const Submission& submission, const absl::Status& status);

  GpuDevice* gpu_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Submission> arrived_;  // guarded by mutex_
  bool ending_ = false;             // guarded by mutex_
  std::vector<gpuEvent> ring_;      // guarded by mutex_: unused events
  std::thread thread_;

  // The members below belong to the thread.
  std::deque<Submission> waiting_;
  std::deque<Submission> running_;  // in the stream's order
};

}  // namespace trine::hip
