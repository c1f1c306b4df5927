// Work with signals: submitted here, it goes on while the caller does. One thread for each device.
//
// The thread starts whatever has its waits reached, in the order it came; what only waits for work
// that the same stream already has need not wait at all, as a stream keeps its order. Behind each
// start stands an event of a ring; when it has passed, the submission's signals are set.
#ifndef TRINE_BACKENDS_HIP_SUBMISSIONS_H_
#define TRINE_BACKENDS_HIP_SUBMISSIONS_H_

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

// A point whose timeline the submission's owner keeps.
struct SyncPoint {
  sdk::Timeline* timeline = nullptr;
  uint64_t value = 0;
};

class Submissions {
 public:
  // The device outlives it.
  explicit Submissions(GpuDevice* gpu) : gpu_(gpu) {}
  // All that was submitted is settled first; what still waits then fails with CANCELLED.
  ~Submissions();

  // `start` puts work on the device's stream, or does it.
  void Add(std::vector<SyncPoint> waits, std::vector<SyncPoint> signals,
           std::function<absl::Status()> start);

 private:
  struct Submission {
    std::vector<SyncPoint> waits, signals;
    std::function<absl::Status()> start;
    gpuEvent done = nullptr;  // of the ring, once it is started
  };
  enum class Readiness { kNot, kReady, kFailed };

  void Serve();
  bool StartOne();
  void FinishOldest();
  Readiness ReadinessOf(const Submission& submission, trine_status* status,
                        std::string* message) const;
  bool IsUnderWay(const SyncPoint& point) const;
  absl::StatusOr<gpuEvent> TakeEvent();
  static void SettleAll(const Submission& submission, trine_status status,
                        const std::string& message);
  static void SettleAll(const Submission& submission, const absl::Status& status);

  GpuDevice* gpu_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Submission> arrived_;  // under the mutex
  bool ending_ = false;             // likewise
  std::thread thread_;

  // The thread's own.
  std::deque<Submission> waiting_;
  std::deque<Submission> running_;  // in the stream's order
  std::vector<gpuEvent> ring_;      // events that nothing uses
};

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_SUBMISSIONS_H_
