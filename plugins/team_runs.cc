#include "plugins/team_runs.h"

#include <sched.h>

#include <utility>

#include "plugins/float_defaults.h"
#include "plugins/thread_team.h"

namespace trine {
namespace {

// The team and the number that the calling thread has as a worker; null outside of a run.
thread_local TeamRuns* inside = nullptr;
thread_local uint32_t self = 0;

// Returns the processor that the calling thread was on a moment ago; -1: not known.
int ProcessorNow() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

}  // namespace

TeamRuns::TeamRuns(uint32_t workers, uint32_t processors) : workers_(workers), places_(workers) {
  for (std::atomic<int>& place : places_) place.store(-1, std::memory_order_relaxed);
  if (workers > processors) return;
  in_run_ = Patience{50};
  between_runs_ = Patience{500};
}

absl::Status TeamRuns::CheckOutside() {
  if (inside == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError("parallel_run was called from inside parallel_run");
}

absl::Status TeamRuns::TakeTurn(std::unique_lock<std::mutex>* lock, trine_worker_fn fn, void* arg) {
  turn_.wait(*lock, [&] { return !busy_ || abandoned_; });
  if (abandoned_) return absl::AbortedError("the thread team was given up");
  busy_ = true;
  fn_ = fn;
  arg_ = arg;
  threw_.store(false, std::memory_order_relaxed);
  arrived_.store(0, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status TeamRuns::EndTurn(const absl::Status& ran) {
  const bool threw = threw_.load(std::memory_order_acquire);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    busy_ = false;
  }
  turn_.notify_one();
  return threw ? absl::InternalError("a worker function threw an exception") : ran;
}

bool TeamRuns::Abandon() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::exchange(abandoned_, true)) return false;
  }
  turn_.notify_all();
  return true;
}

void TeamRuns::Share(uint32_t worker) {
  // The thread may belong to a team already, if the embedding program's threads are one.
  TeamRuns* const outer = std::exchange(inside, this);
  const uint32_t outer_self = std::exchange(self, worker);
  const FloatDefaults defaults;
  try {
    fn_(arg_, worker, workers_);
  } catch (...) {
    // The worker never reaches the remaining barriers, so it releases all who wait at them.
    threw_.store(true, std::memory_order_release);
    round_.Add(1);
  }
  self = outer_self;
  inside = outer;
}

TeamRuns::Patience TeamRuns::PatienceOf(uint32_t worker, Patience usual) {
  const int here = usual == Patience{0} ? -1 : ProcessorNow();
  if (here < 0) return usual;
  if (places_[worker].load(std::memory_order_relaxed) != here) {
    places_[worker].store(here, std::memory_order_relaxed);
  }
  for (size_t w = 0; w < places_.size(); ++w) {
    if (w != worker && places_[w].load(std::memory_order_relaxed) == here) return Patience{0};
  }
  return usual;
}

void TeamRuns::Barrier(uint32_t worker) {
  const uint32_t mine = round_.Load();
  // Read after `round_`: a worker that throws later than this opens the round `mine`.
  if (threw_.load(std::memory_order_acquire)) return;
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == workers_) {
    arrived_.store(0, std::memory_order_relaxed);
    round_.Add(1);
  } else {
    round_.WaitWhile(mine, PatienceInRun(worker));
  }
}

void TeamRuns::BarrierHere() {
  if (inside != nullptr && inside->workers_ > 1) inside->Barrier(self);
}

void ThreadTeam::Barrier() { TeamRuns::BarrierHere(); }

}  // namespace trine
