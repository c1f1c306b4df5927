// Jobs and errands, which are the two kinds of requests that take time, and the desk that accepts
// them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine/session.h"
#include "tools/server/service/job_queue.h"
#include "tools/server/service/reply.h"

namespace trine::server {

// A request that takes places in the model, in one part or in several. The job queue's threads run
// the parts as places come free, and any thread may cancel the job. The request is answered
// whatever happens, once all parts have ended. If a part fails, the others end soon.
class Job {
 public:
  // `time` is the limit from the request's arrival to the end of its answer.
  Job(std::unique_ptr<Reply> reply, std::chrono::seconds time)
      : reply_(std::move(reply)), time_(time) {}
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Returns the number of parts that can begin at once. Running parts may add more.
  virtual int64_t parts() const { return 1; }

  // Returns whether Prepare can do some of the work while the job waits. If so, Prepare may be
  // called once, on any thread, also while the job runs.
  virtual bool prepares() const { return false; }
  virtual void Prepare() {}

  Reply::Clock::time_point arrived() const { return reply_->begin(); }
  Exchange& exchange() const { return reply_->exchange(); }

  // Runs one part. `queue` holds the job.
  void Run(JobQueue* queue, const JobQueue::Turn& turn);
  // Ends `parts` parts with `status` in place of running them.
  void Refuse(int64_t parts, const absl::Status& status) noexcept;
  // Makes the job end soon, with `why` unless its client has gone or its time is up. Any thread may
  // call it.
  void Cancel(const absl::Status& why);

 protected:
  using AddParts = std::function<absl::Status(int64_t parts)>;
  // Does the work of one part. Parts of a job run at the same time. The part may call `add` to add
  // more parts.
  virtual absl::Status Work(const AddParts& add) = 0;
  // Sends the end of the answer, or an error in its place. Called once, after all parts have ended.
  virtual void Finish(const absl::Status& status) = 0;
  // Makes the parts that run end sooner. Called from any thread.
  virtual void OnCancel() {}

  Reply& reply() const { return *reply_; }
  // Returns how long the first part waited for its place, or nullopt if no part has begun.
  std::optional<std::chrono::nanoseconds> waited() const;
  // Returns OK if the job may continue. Otherwise returns why it must stop: its client has gone,
  // its time is up, it was cancelled, or a part of it has failed.
  absl::Status Interruption() const;

 private:
  // Counts `parts` parts as ended. After the last one it sends the end of the answer.
  void End(int64_t parts, const absl::Status& status) noexcept;

  const std::unique_ptr<Reply> reply_;
  const std::chrono::seconds time_;
  std::atomic<bool> stopped_ = false;  // why_ says why
  mutable std::mutex mutex_;           // guards what follows
  absl::Status why_;                   // the reason for Cancel, or the failure of a part
  absl::Status failure_;               // what the answer ends with
  std::optional<int64_t> open_;  // parts that have not ended; nullopt: none has begun or ended
  std::optional<std::chrono::nanoseconds> waited_;
};

// The sessions that a job runs, so that other threads can cancel them. Thread-safe.
class RunningSessions {
 public:
  void Begin(Session* session) {
    std::lock_guard lock(mutex_);
    sessions_.push_back(session);
  }
  // Removes the session, so that Cancel does not reach it. Also clears a cancel that came too late,
  // because it must not end the next request of the session.
  void End(Session* session) {
    std::lock_guard lock(mutex_);
    if (std::erase(sessions_, session) > 0) session->ClearCancel();
  }
  void Cancel() {
    std::lock_guard lock(mutex_);
    for (Session* session : sessions_) session->Cancel();
  }

 private:
  std::mutex mutex_;
  std::vector<Session*> sessions_;  // guarded by mutex_
};

// Accepts requests of two kinds: jobs, which take places in the model, and errands, which take a
// while but no place. Refuses requests that have waited too long, cancels jobs whose client has
// gone, and ends everything at shutdown. Thread-safe.
class JobDesk {
 public:
  // `time` is the longest time that a request may wait after its arrival, as an errand and as a job
  // together. `tick` is called twice a second; it may be null.
  JobDesk(const JobQueueOptions& options, std::chrono::seconds time,
          std::function<void()> tick = nullptr);
  ~JobDesk();  // calls Stop
  JobDesk(const JobDesk&) = delete;
  JobDesk& operator=(const JobDesk&) = delete;

  // Adds a job of `client`, and frees the body of its request. Cancels the job when its exchange
  // loses the client.
  void Take(const std::string& client, const std::shared_ptr<Job>& job);
  // Ends a job with the answer `why`: at once if it waits, soon if it runs. May be called before
  // the job's Take, too. Does nothing if the job has ended.
  void LetGo(const std::weak_ptr<Job>& job, const absl::Status& why);

  // Runs `errand` on a thread of the desk, because the threads of connections must not wait.
  using Errand = std::function<void(std::unique_ptr<Reply>)>;
  void Run(const std::string& client, std::unique_ptr<Reply> reply, Errand errand);

  // Accepts nothing more. Waits until nothing runs or waits, but at most until the time `until` or
  // until `hurry` returns true. Errands that it waits for may still become jobs.
  void Finish(std::chrono::steady_clock::time_point until, const std::function<bool()>& hurry);
  // Cancels everything; each cancelled request is answered. Returns true if all jobs have ended
  // within `limit`.
  bool Cancel(std::chrono::milliseconds limit);
  // Accepts nothing more and ends all threads.
  void Stop();

  JobQueueCounters counters() const { return jobs_.counters(); }
  // Returns whether no job and no errand runs or waits.
  bool IsIdle() const;

 private:
  void KeepTime();  // refuses requests that have waited too long, until Stop

  const std::chrono::seconds time_;
  const std::function<void()> tick_;
  JobQueue jobs_, errands_, preparations_;

  std::mutex mutex_;
  bool stopping_ = false;  // guarded by mutex_, as is taken_
  struct Taken {
    std::weak_ptr<Job> job;
    uint64_t number = 0;  // the job's number in jobs_; 0: not added yet
  };
  std::map<const Job*, Taken> taken_;  // jobs that wait or run
  std::condition_variable stop_now_;
  std::thread keeper_;
};

}  // namespace trine::server
