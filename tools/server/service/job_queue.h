// A queue of jobs whose parts wait for places in the model, with the threads that run the parts. A
// part takes one of a fixed number of places; no place is kept free for a job that has several. So
// the parts of a large job begin one by one, as places come free. Clients take turns, part by part,
// so that a client with many jobs or many parts delays only itself. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
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
  int64_t running = 0;  // jobs of which a part runs
  int64_t waiting = 0;  // jobs that wait, and of which no part runs
};

class JobQueue {
 public:
  struct Turn {
    uint64_t number = 0;  // the job's number
    // The time since the part was added, or since the job's part before it began.
    std::chrono::nanoseconds waited{};
  };
  struct Work {
    // Runs one part. Called on a thread of the queue, once for each part, for several parts at the
    // same time.
    std::function<void(const Turn& turn)> run;
    // Called in place of run for `parts` parts: with UNAVAILABLE when the queue stops, with
    // DEADLINE_EXCEEDED when the job has waited too long. Not called for a job that Add rejected or
    // for parts that Remove removed. May be null.
    std::function<void(int64_t parts, const absl::Status&)> refuse = nullptr;
    // The time when the job's request arrived; nullopt: the time of Add.
    std::optional<std::chrono::steady_clock::time_point> arrived = std::nullopt;
  };

  explicit JobQueue(const JobQueueOptions& options);
  ~JobQueue();  // calls Stop
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  // Adds a job of `parts` parts, of which there is at least one. Sets *number to the job's number,
  // for Remove. Returns RESOURCE_EXHAUSTED if too many jobs wait, and UNAVAILABLE after Close or if
  // there is no thread. On failure neither `run` nor `refuse` is called.
  absl::Status Add(const std::string& client, int64_t parts, Work work, uint64_t* number);
  // Adds parts to the job of which the calling thread runs a part. Returns false, and adds nothing,
  // if the queue stops or memory runs out.
  bool AddParts(uint64_t number, int64_t parts);
  // Returns whether more parts run and wait than there are places, so that the last one added must
  // wait.
  bool IsFull() const;
  // Removes the parts of a job that wait. Returns how many these were.
  int64_t Remove(uint64_t number);

  void Close();  // makes all later calls of Add fail
  // Waits until no job runs or waits, at most for `limit`. Returns whether that is so.
  bool WaitUntilIdle(std::chrono::milliseconds limit);
  // Refuses all parts that wait.
  void DropWaiting();
  // Refuses the waiting parts of jobs that arrived more than `limit` ago.
  void DropOlder(std::chrono::milliseconds limit);
  // Closes the queue, refuses the jobs that wait, and waits for those that run. The caller must
  // cancel running jobs before, if it does not want to wait for their ends.
  void Stop();

  JobQueueCounters counters() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    uint64_t number = 0;
    std::string client;
    Work work = {};
    Clock::time_point since = {};  // the time when the wait of its first waiting part began
    int64_t waiting = 0;           // parts; if there are any, the entry is in its client's list
    int64_t running = 0;           // parts
    int64_t users = 0;             // threads that call into `work`, each of which ends with Release
  };
  using EntryPtr = std::shared_ptr<Entry>;
  struct Client {
    std::string name;
    std::list<EntryPtr> jobs;
  };
  struct Removed {
    EntryPtr entry;  // its users count the caller
    int64_t parts = 0;
  };

  void RunThread();
  bool CanStart() const { return waiting_parts_ > 0 && taken_ < options_.places; }
  EntryPtr TakeNext();
  void Push(const EntryPtr& entry, int64_t parts);
  // Ends a call into the entry's work. Destroys the work if the job has ended.
  void Release(const EntryPtr& entry);
  // Takes the waiting parts of the jobs that `chosen` accepts out of the queue.
  std::list<Removed> Extract(const std::function<bool(const Entry&)>& chosen);
  // Refuses these parts. Calls `refuse` without holding the lock.
  void Drop(const std::function<bool(const Entry&)>& chosen, const absl::Status& why);
  static void Refuse(const Work& work, int64_t parts, const absl::Status& why) noexcept;
  void StartThreads();

  const JobQueueOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Client> clients_;  // clients with waiting parts; the first is next
  std::map<std::string, std::list<Client>::iterator> by_name_;
  std::map<uint64_t, EntryPtr> entries_;  // jobs that wait or run
  size_t waiting_ = 0;                    // jobs in the lists of clients
  int64_t waiting_parts_ = 0;
  int64_t taken_ = 0;
  uint64_t last_number_ = 0;
  bool closed_ = false, stopping_ = false;
  std::vector<std::thread> threads_;  // started as needed, at most one per place
  size_t idle_ = 0;                   // the number of idle threads
  size_t starting_ = 0;               // the number of threads that have not begun to run
};

}  // namespace trine::server
