// A request that takes places in the model: run in turns on threads of the queue's, let go of from
// anywhere, answered whatever happens.
#ifndef TRINE_TOOLS_SERVER_SERVICE_JOB_H_
#define TRINE_TOOLS_SERVER_SERVICE_JOB_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/server/service/reply.h"

namespace trine::server {

class Job {
 public:
  // `time`: from the request's arrival to its answer's end.
  Job(std::unique_ptr<Reply> reply, std::chrono::seconds time)
      : reply_(std::move(reply)), time_(time) {}
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Sequences at once.
  virtual int64_t places() const { return 1; }

  // Whether there is something to be done for it while it waits. Then Prepare may be called, once,
  // from any thread; it may be run meanwhile.
  virtual bool prepares() const { return false; }
  virtual void Prepare() {}

  Reply::Clock::time_point arrived() const { return reply_->begin(); }

  // A part of the answer; `waited`: for its places, this time. True: there is more to do, in
  // another run.
  bool Run(std::chrono::nanoseconds waited);
  // In place of a run.
  void Refuse(const absl::Status& status) noexcept;
  // From any thread: it ends soon, with `why` unless it has a reason of its own.
  void Cancel(const absl::Status& why);

 protected:
  // One run. True: there is more to do.
  virtual absl::StatusOr<bool> Work() = 0;
  // The answer's end, or an error in its place.
  virtual void Finish(const absl::Status& status) = 0;
  // Hastens what runs; from any thread.
  virtual void OnCancel() {}

  Reply& reply() const { return *reply_; }
  bool has_run() const { return has_run_; }
  std::chrono::nanoseconds waited() const { return waited_; }
  // Why it does not go on: the client has gone, time is up, or it was cancelled.
  absl::Status Interruption() const;

 private:
  const std::unique_ptr<Reply> reply_;
  const std::chrono::seconds time_;
  bool has_run_ = false;
  std::chrono::nanoseconds waited_{};
  std::atomic<bool> cancelled_ = false;
  mutable std::mutex mutex_;
  absl::Status why_;  // it was cancelled; guarded by mutex_
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_JOB_H_
