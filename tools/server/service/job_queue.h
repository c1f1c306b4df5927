// A queue of jobs that wait for places in the model, with the threads that run them. Each job takes
// some of a fixed number of places. Clients take turns, so that a client with many jobs delays only
// itself. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"

namespace trine::server {

struct JobQueueOptions {
  int64_t places = 1;
  size_t waiting = 256;             // the most jobs that may wait
  size_t waiting_per_client = 128;  // the most jobs of one client that may wait
  std::string name = "trine-job";   // the threads are called "<name>-0" and so on
};

struct JobQueueCounters {
  int64_t places = 0, taken = 0;
  int64_t running = 0, waiting = 0;
};

class JobQueue {
 public:
  struct Work {
    // Called on a thread of the queue. `waited` is the time that the job waited for its places
    // before this run. Returns true if the job needs another turn, after the jobs that wait now.
    std::function<bool(std::chrono::nanoseconds waited)> run;
    // Called in place of the next run: with UNAVAILABLE when the queue stops, with
    // DEADLINE_EXCEEDED when the job has waited too long. Not called for a job that Add rejected or
    // Remove removed. May be null.
    std::function<void(const absl::Status&)> refuse = nullptr;
    // The time when the job's request arrived; nullopt: the time of Add.
    std::optional<std::chrono::steady_clock::time_point> arrived = std::nullopt;
  };

  explicit JobQueue(const JobQueueOptions& options);
  ~JobQueue();  // calls Stop
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  // Adds a job that takes `places` places, from 1 to all of them. Sets *number to the job's number,
  // for Remove. Returns RESOURCE_EXHAUSTED if too many jobs wait, and UNAVAILABLE after Close or if
  // there is no thread. On failure neither `run` nor `refuse` is called.
  absl::Status Add(const std::string& client, int64_t places, Work work, uint64_t* number);
  // Returns whether the jobs that run and wait need more places than there are, so that the last
  // one added must wait.
  bool IsFull() const;
  // Removes a job that waits for its first turn or for another one. Returns false if it does not
  // wait.
  bool Remove(uint64_t number);

  void Close();  // makes all later calls of Add fail
  // Waits until no job runs or waits, at most for `limit`. Returns whether that is so.
  bool WaitUntilIdle(std::chrono::milliseconds limit);
  // Refuses all jobs that wait.
  void DropWaiting();
  // Refuses the waiting jobs that arrived more than `limit` ago, even if they have had a turn.
  void DropOlder(std::chrono::milliseconds limit);
  // Closes the queue, refuses the jobs that wait, and waits for those that run. The caller must
  // cancel running jobs before, if it does not want to wait for their ends.
  void Stop();

  JobQueueCounters counters() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    uint64_t number = 0;
    int64_t places = 1;
    Work work = {};
    Clock::time_point since = {};  // the time when the wait for this turn began
  };
  struct Client {
    std::string name;
    std::list<Waiting> jobs;
  };

  void RunThread();
  bool CanStart() const;
  Waiting TakeNext();
  void Push(const std::string& client, Waiting&& waiting);
  // Queues a job for its next turn. Returns false, and leaves `waiting` as it is, if the queue
  // stops or memory runs out.
  bool PushAgain(const std::string& client, Waiting&& waiting);
  static void Refuse(const Work& work, const absl::Status& why) noexcept;
  // Takes the waiting jobs that `chosen` accepts out of the queue. Needs no memory.
  std::list<Waiting> Extract(const std::function<bool(const Waiting&)>& chosen);
  // Refuses these jobs. Calls `refuse` without holding the lock.
  void Drop(const std::function<bool(const Waiting&)>& chosen, const absl::Status& why);
  bool StartThread();

  const JobQueueOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Client> clients_;  // clients with waiting jobs; the first is next
  std::map<std::string, std::list<Client>::iterator> by_name_;
  size_t waiting_ = 0;
  int64_t taken_ = 0, running_ = 0;
  uint64_t last_number_ = 0;
  bool closed_ = false, stopping_ = false;
  std::vector<std::thread> threads_;  // started as needed, at most one per place
  size_t idle_ = 0;                   // the number of idle threads
};

}  // namespace trine::server
