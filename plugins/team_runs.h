// Implements what the runs of all kinds of teams have in common. Runs take turns, and the workers
// of a run meet at barriers. If a worker throws, the other workers pass the barriers and finish.
// The team provides the threads.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "plugins/wait_word.h"
#include "trine/backend.h"

namespace trine {

class TeamRuns {
 public:
  // How long a waiter spins before it sleeps. A sleeper costs its waker a system call and is slow
  // to run again. A spinning thread takes a processor from others, perhaps from the one it waits
  // for.
  using Patience = std::chrono::microseconds;

  // The distance in bytes between variables that different threads write. Two cache lines, because
  // processors fetch lines in pairs.
  static constexpr size_t kApart = 128;

  // With fewer processors than workers no worker spins, so that other threads get the processors.
  TeamRuns(uint32_t workers, uint32_t processors);
  TeamRuns(const TeamRuns&) = delete;
  TeamRuns& operator=(const TeamRuns&) = delete;

  uint32_t workers() const { return workers_; }
  // Makes the team smaller than the constructor said. Call it before the first Run.
  void set_workers(uint32_t workers) { workers_ = workers; }

  // Does what ThreadTeam::Run promises. Calls `publish` before Abandon can take effect, then
  // `region`. The region makes each worker call Share once, worker 0 on the calling thread, and
  // returns when all of them have returned. If it returns an error, no worker may have run fn.
  template <class Publish, class Region>
  absl::Status Run(trine_worker_fn fn, void* arg, Publish publish, Region region) {
    if (absl::Status s = CheckOutside(); !s.ok()) return s;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (absl::Status s = TakeTurn(&lock, fn, arg); !s.ok()) return s;
      publish();
    }
    const absl::Status ran = region();
    return EndTurn(ran);
  }
  template <class Region>
  absl::Status Run(trine_worker_fn fn, void* arg, Region region) {
    return Run(
        fn, arg, [] {}, region);
  }

  // Runs one worker's part, with the floating-point state of a new thread. Throws nothing.
  void Share(uint32_t worker);

  // Lets no further run begin. Returns false if it was called before.
  bool Abandon();

  // Returns how long the worker may spin, at most `usual`. Returns 0 when other work has driven two
  // workers onto one processor: a spinning worker would keep the other from running, and a
  // scheduler may leave both there for minutes.
  Patience PatienceOf(uint32_t worker, Patience usual);
  // At barriers, where the other workers are about to arrive.
  Patience PatienceInRun(uint32_t worker) { return PatienceOf(worker, in_run_); }
  // Between runs: long enough for the host to sample a token, and asleep within a millisecond.
  Patience PatienceBetweenRuns(uint32_t worker) { return PatienceOf(worker, between_runs_); }

  // Waits for the other workers of the run that the calling thread is in; outside of one, returns.
  static void BarrierHere();

 private:
  static absl::Status CheckOutside();
  absl::Status TakeTurn(std::unique_lock<std::mutex>* lock, trine_worker_fn fn, void* arg);
  absl::Status EndTurn(const absl::Status& ran);
  void Barrier(uint32_t worker);

  uint32_t workers_;
  Patience in_run_{0};
  Patience between_runs_{0};
  // The processor that each worker was on when it last began to wait; -1 before that. Written only
  // when it changes, so that reading it mostly hits the cache.
  std::vector<std::atomic<int>> places_;

  std::mutex mutex_;
  std::condition_variable turn_;
  bool busy_ = false;       // guarded by mutex_: one Run at a time
  bool abandoned_ = false;  // guarded by mutex_

  // Written by TakeTurn. Teams order this before the workers' reads.
  trine_worker_fn fn_ = nullptr;
  void* arg_ = nullptr;

  // A reusable barrier: the last worker to arrive opens the next round.
  alignas(kApart) std::atomic<uint32_t> arrived_{0};
  alignas(kApart) WaitWord round_;
  std::atomic<bool> threw_{false};  // next to `round_` in memory, because waiters read both
};

}  // namespace trine
