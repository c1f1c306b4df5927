// Where requests are handed in: jobs for the model, errands that take a while but no place in it.
// Sees that nobody waits for ever, lets go of what a client that has gone wanted, and ends all of
// it in time. Thread-safe.
#ifndef TRINE_TOOLS_SERVER_SERVICE_JOB_DESK_H_
#define TRINE_TOOLS_SERVER_SERVICE_JOB_DESK_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tools/server/service/job.h"
#include "tools/server/service/job_queue.h"
#include "tools/server/service/reply.h"

namespace trine::server {

class JobDesk {
 public:
  // `time`: how long a request may wait, from its arrival on, as an errand and as a job together.
  // `tick`: what else has to be looked after, twice a second.
  JobDesk(const JobQueueOptions& options, std::chrono::seconds time,
          std::function<void()> tick = nullptr);
  ~JobDesk();  // Stop
  JobDesk(const JobDesk&) = delete;
  JobDesk& operator=(const JobDesk&) = delete;

  // `client`: whom it counts for. The job is let go of when `exchange`, its own, loses its client.
  void Take(const std::string& client, const std::shared_ptr<Job>& job, Exchange* exchange);
  // Answers one that was taken, or is about to be, with `why`: at once where it waits, else soon.
  // Nothing, where it has ended.
  void LetGo(const std::weak_ptr<Job>& job, const absl::Status& why);

  // On another thread than those of the connections, which nobody may hold up.
  using Errand = std::function<void(std::unique_ptr<Reply>)>;
  void Run(const std::string& client, std::unique_ptr<Reply> reply, Errand errand);

  // Takes nothing more, and waits until nothing runs or waits, or time is up, or `hurry` says so.
  // Errands may still become jobs.
  void Finish(std::chrono::steady_clock::time_point until, const std::function<bool()>& hurry);
  // Cancels what there is; who is cancelled says so to its client. True: all have, within the
  // limit.
  bool Cancel(std::chrono::milliseconds limit);
  // Close, and the end of all threads.
  void Stop();

  JobQueueCounters counters() const { return jobs_.counters(); }

 private:
  void KeepTime();  // until it stops: who has waited too long is told

  const std::chrono::seconds time_;
  const std::function<void()> tick_;
  JobQueue jobs_, errands_, preparations_;

  std::mutex mutex_;
  bool stopping_ = false;  // guarded by mutex_, as is what follows
  struct Taken {
    std::weak_ptr<Job> job;
    uint64_t number = 0;  // in the queue; 0: it is not there yet
  };
  std::map<const Job*, Taken> taken_;  // that wait or run
  std::condition_variable stop_now_;
  std::thread keeper_;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_JOB_DESK_H_
