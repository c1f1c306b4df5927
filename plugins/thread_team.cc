#include "plugins/thread_team.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "plugins/wait_word.h"

namespace trine {
namespace {

// The distance in bytes between variables that different threads write. Two cache lines, because
// processors fetch lines in pairs.
constexpr size_t kApart = 128;

// How long a waiter spins before it sleeps. A sleeper costs its waker a system call and is slow to
// run again. A spinning thread takes a processor from others, perhaps from the one it waits for.
using Patience = std::chrono::microseconds;
// At barriers: the other workers are about to arrive.
constexpr Patience kInRun{50};
// Between runs: long enough for the host to sample a token, and asleep within a millisecond.
constexpr Patience kBetweenRuns{500};
// The spinning time of a team with more threads than processors.
constexpr Patience kNone{0};

uint32_t ProcessorsHere() {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return static_cast<uint32_t>(CPU_COUNT(&set));
#endif
  return std::thread::hardware_concurrency();  // 0: not known
}

// Returns the processor that the calling thread was on a moment ago; -1: not known.
int ProcessorNow() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

void Bind(std::thread& thread, int cpu) {
#if defined(__linux__)
  if (cpu < 0 || cpu >= CPU_SETSIZE) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  // If the system refuses, the thread runs unbound.
  pthread_setaffinity_np(thread.native_handle(), sizeof(set), &set);
#else
  (void)thread;
  (void)cpu;
#endif
}

// Names the thread, which would otherwise have the name of the thread that loaded the model.
void Name(std::thread& thread, uint32_t worker) {
#if defined(__linux__)
  const std::string name = "trine-cpu-" + std::to_string(worker % 100000);
  pthread_setname_np(thread.native_handle(), name.c_str());
#else
  (void)thread;
  (void)worker;
#endif
}

}  // namespace

struct ThreadTeam::State {
  std::vector<std::thread> threads;
  uint32_t workers = 1;     // fixed before the first Run
  Patience in_run = kNone;  // this one and the next: fixed before the first Run
  Patience between_runs = kNone;
  // The processor that each worker was on when it last began to wait; -1 before that. Written only
  // when it changes, so that reading it mostly hits the cache.
  std::vector<std::atomic<int>> places;

  std::mutex mutex;
  std::condition_variable turn;
  bool busy = false;       // guarded by mutex: one Run at a time
  bool abandoned = false;  // guarded by mutex

  // The run, published under `mutex` in this order: `fn` and `arg`, `run`, `generation`. Workers
  // wait for `generation` to change.
  trine_worker_fn fn = nullptr;
  void* arg = nullptr;
  std::atomic<uint32_t> run{0};
  std::atomic<bool> stop{false};
  alignas(kApart) WaitWord generation;
  alignas(kApart) WaitWord running;  // workers still in the run, the caller not counted

  // A reusable barrier: the last worker to arrive opens the next round.
  alignas(kApart) std::atomic<uint32_t> arrived{0};
  alignas(kApart) WaitWord round;
  std::atomic<bool> threw{false};  // next to `round` in memory, because waiters read both

  // The team and the worker number that the calling thread has in a run; null outside of one.
  static thread_local State* inside;
  static thread_local uint32_t self;

  // Returns how long the worker may spin, at most `usual`. Returns 0 when other work has driven two
  // workers onto one processor: a spinning worker would keep the other from running, and a
  // scheduler may leave both there for minutes.
  Patience PatienceOf(uint32_t worker, Patience usual) {
    const int here = usual == kNone ? -1 : ProcessorNow();
    if (here < 0) return usual;
    if (places[worker].load(std::memory_order_relaxed) != here) {
      places[worker].store(here, std::memory_order_relaxed);
    }
    for (size_t w = 0; w < places.size(); ++w) {
      if (w != worker && places[w].load(std::memory_order_relaxed) == here) return kNone;
    }
    return usual;
  }

  // Runs one worker's part. A worker that throws never reaches the remaining barriers, so it
  // releases all who wait at them.
  void Share(uint32_t worker) {
    inside = this;
    self = worker;
    try {
      fn(arg, worker, workers);
    } catch (...) {
      threw.store(true, std::memory_order_release);
      round.Add(1);
    }
    inside = nullptr;
  }

  void Work(uint32_t worker) {
    uint32_t seen = 0, done = 0;
    for (;;) {
      generation.WaitWhile(seen, PatienceOf(worker, between_runs));
      seen = generation.Load();
      // Runs even when `stop` is set: the Run that published this waits for it.
      if (const uint32_t now = run.load(std::memory_order_acquire); now != done) {
        done = now;
        Share(worker);
        running.Add(UINT32_MAX);  // subtracts 1
      }
      if (stop.load(std::memory_order_acquire)) return;
    }
  }

  void WaitAllDone() {
    for (uint32_t left; (left = running.Load()) != 0;) {
      running.WaitWhile(left, PatienceOf(0, in_run));
    }
  }

  void Barrier() {
    const uint32_t mine = round.Load();
    // Read after `round`: a worker that throws later than this opens the round `mine`.
    if (threw.load(std::memory_order_acquire)) return;
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == workers) {
      arrived.store(0, std::memory_order_relaxed);
      round.Add(1);
    } else {
      round.WaitWhile(mine, PatienceOf(self, in_run));
    }
  }
};

thread_local ThreadTeam::State* ThreadTeam::State::inside = nullptr;
thread_local uint32_t ThreadTeam::State::self = 0;

ThreadTeam::ThreadTeam(const ThreadTeamOptions& options) : state_(std::make_shared<State>()) {
  const uint32_t wanted = options.workers == 0 ? 1 : options.workers;
  const uint32_t processors = options.processors == 0 ? ProcessorsHere() : options.processors;
  if (wanted <= processors) {
    state_->in_run = kInRun;
    state_->between_runs = kBetweenRuns;
  }
  state_->places = std::vector<std::atomic<int>>(wanted);
  for (std::atomic<int>& place : state_->places) place.store(-1, std::memory_order_relaxed);
  for (uint32_t w = 1; w < wanted; ++w) {
    try {
      state_->threads.emplace_back([state = state_, w] { state->Work(w); });
    } catch (const std::system_error&) {
      break;
    }
    Name(state_->threads.back(), w);
    if (!options.cpus.empty()) {
      Bind(state_->threads.back(), options.cpus[w % options.cpus.size()]);
    }
  }
  state_->workers = static_cast<uint32_t>(state_->threads.size()) + 1;
}

ThreadTeam::~ThreadTeam() {
  if (state_->threads.empty() || !state_->threads.front().joinable()) return;
  state_->stop.store(true, std::memory_order_release);
  state_->generation.Add(1);
  for (std::thread& thread : state_->threads) thread.join();
}

uint32_t ThreadTeam::workers() const { return state_->workers; }

absl::Status ThreadTeam::Run(trine_worker_fn fn, void* arg) {
  // Keeps the state: an abandoned team's object may be destroyed before its last Run returns.
  const std::shared_ptr<State> state = state_;
  if (State::inside != nullptr) {
    return absl::FailedPreconditionError("parallel_run was called from inside parallel_run");
  }
  {
    std::unique_lock<std::mutex> lock(state->mutex);
    state->turn.wait(lock, [&] { return !state->busy || state->abandoned; });
    if (state->abandoned) return absl::AbortedError("the thread team was given up");
    state->busy = true;
    state->fn = fn;
    state->arg = arg;
    state->threw.store(false, std::memory_order_relaxed);
    state->arrived.store(0, std::memory_order_relaxed);
    state->running.Store(state->workers - 1);
    state->run.fetch_add(1, std::memory_order_release);
    if (state->workers > 1) state->generation.Add(1);
  }
  state->Share(0);
  state->WaitAllDone();
  const bool threw = state->threw.load(std::memory_order_acquire);
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->busy = false;
  }
  state->turn.notify_one();
  return threw ? absl::InternalError("a worker function threw an exception") : absl::OkStatus();
}

void ThreadTeam::Barrier() {
  if (State::inside != nullptr && State::inside->workers > 1) State::inside->Barrier();
}

void ThreadTeam::Abandon() {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    if (std::exchange(state_->abandoned, true)) return;
  }
  state_->turn.notify_all();
  state_->stop.store(true, std::memory_order_release);
  // Idle workers end; a hung worker keeps its own reference to the state.
  state_->generation.Add(1);
  for (std::thread& thread : state_->threads) thread.detach();
}

}  // namespace trine
