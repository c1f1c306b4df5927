// Work that waits for places in the model, and the threads that do it. Each job takes some of a
// fixed number of places; those that wait are served one client after the other, so that whoever
// asks for much waits for itself. Thread-safe.
#ifndef TRINE_TOOLS_SERVER_SERVICE_JOB_QUEUE_H_
#define TRINE_TOOLS_SERVER_SERVICE_JOB_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
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
  size_t waiting = 256;             // jobs in all
  size_t waiting_per_client = 128;  // and of one client
  std::string name = "trine-job";   // of its threads, with a number
};

struct JobQueueCounters {
  int64_t places = 0, taken = 0;
  int64_t running = 0, waiting = 0;
};

class JobQueue {
 public:
  struct Work {
    // On a thread of the queue's. `waited`: for its places, this time. True: it wants its turn
    // again, behind those that wait.
    std::function<bool(std::chrono::nanoseconds waited)> run;
    // In place of the next run: UNAVAILABLE when the queue stops, DEADLINE_EXCEEDED when it has
    // waited for too long. Not for one that was never added, or was removed.
    std::function<void(const absl::Status&)> refuse = nullptr;
    // Since when somebody waits for it; else since it was added.
    std::optional<std::chrono::steady_clock::time_point> arrived = std::nullopt;
  };

  explicit JobQueue(const JobQueueOptions& options);
  ~JobQueue();  // Stop
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  // `places`: 1 to all of them. RESOURCE_EXHAUSTED when too many wait, UNAVAILABLE after Close; the
  // job is dropped then, without being run. `number` names the job from then on.
  absl::Status Add(const std::string& client, int64_t places, Work work, uint64_t* number);
  // Whether so much runs and waits that not all of it has a place: what is added last waits.
  bool IsFull() const;
  // True: it was waiting, and is no more. Else it runs, or has run.
  bool Remove(uint64_t number);

  void Close();                                         // nothing is added any more
  bool WaitUntilIdle(std::chrono::milliseconds limit);  // no job runs or waits
  // Refuses those that wait, or those of them that arrived so long ago, whether they have had a
  // turn or not.
  void DropWaiting();
  void DropOlder(std::chrono::milliseconds limit);
  // Close, DropWaiting, and the end of those that run, which is theirs to hasten.
  void Stop();

  JobQueueCounters counters() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    uint64_t number = 0;
    int64_t places = 1;
    Work work = {};
    Clock::time_point since = {};  // for this turn
  };
  struct Client {
    std::string name;
    std::deque<Waiting> jobs;
  };

  void RunThread();
  bool CanStart() const;
  Waiting TakeNext();
  void Push(const std::string& client, Waiting&& waiting);
  // For its next turn. False, and it stays where it is: there will be none.
  bool PushAgain(const std::string& client, Waiting&& waiting);
  static void Refuse(const Work& work, const absl::Status& why) noexcept;
  // Those that `chosen` says, without the lock being held when they are told.
  void Drop(const std::function<bool(const Waiting&)>& chosen, const absl::Status& why);
  bool StartThread();

  const JobQueueOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Client> clients_;  // that wait; the first is next
  std::map<std::string, std::list<Client>::iterator> by_name_;
  size_t waiting_ = 0;
  int64_t taken_ = 0, running_ = 0;
  uint64_t last_number_ = 0;
  bool closed_ = false, stopping_ = false;
  std::vector<std::thread> threads_;  // as many as have been needed so far, at most one per place
  size_t idle_ = 0;                   // of them
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_JOB_QUEUE_H_
