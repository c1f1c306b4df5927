#include "plugins/thread_team.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace trine {
namespace {

// How often a waiter looks before it sleeps or yields. Long enough to bridge the gap between two
// ops, short enough not to matter when the machine has other work.
constexpr int kSpins = 2000;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

void Bind(std::thread& thread, int cpu) {
#if defined(__linux__)
  if (cpu < 0 || cpu >= CPU_SETSIZE) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(thread.native_handle(), sizeof(set), &set);  // refused: runs unbound
#else
  (void)thread;
  (void)cpu;
#endif
}

}  // namespace

struct ThreadTeam::State {
  std::vector<std::thread> threads;
  uint32_t workers = 1;  // fixed before the first Run

  std::mutex mutex;
  std::condition_variable turn;
  bool busy = false;       // guarded by mutex: one Run at a time
  bool abandoned = false;  // guarded by mutex

  // A run, published under mutex: fn and arg, then `run`, then `generation`, which workers watch.
  trine_worker_fn fn = nullptr;
  void* arg = nullptr;
  std::atomic<uint32_t> run{0};
  std::atomic<uint32_t> generation{0};
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> running{0};  // workers but the caller that are not done with the run
  std::atomic<bool> threw{false};

  // A barrier that any number of rounds can use: the last to arrive opens the next round.
  std::atomic<uint32_t> arrived{0};
  std::atomic<uint32_t> round{0};

  // The team whose worker this thread is at the moment.
  static thread_local State* inside;

  // One worker's share. A worker that throws will not come to the barriers that are left, so
  // nobody waits at them any more.
  void Share(uint32_t worker) {
    inside = this;
    try {
      fn(arg, worker, workers);
    } catch (...) {
      threw.store(true, std::memory_order_release);
    }
    inside = nullptr;
  }

  void Work(uint32_t worker) {
    uint32_t seen = 0, done = 0;
    for (;;) {
      for (int i = 0; i < kSpins && generation.load(std::memory_order_acquire) == seen; ++i)
        Pause();
      generation.wait(seen, std::memory_order_acquire);
      seen = generation.load(std::memory_order_acquire);
      // A run published before the stop is still owed to the Run that waits for it.
      if (const uint32_t now = run.load(std::memory_order_acquire); now != done) {
        done = now;
        Share(worker);
        if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) running.notify_one();
      }
      if (stop.load(std::memory_order_acquire)) return;
    }
  }

  void Wake() {
    generation.fetch_add(1, std::memory_order_release);
    generation.notify_all();
  }

  void WaitAllDone() {
    for (int i = 0; i < kSpins; ++i) {
      if (running.load(std::memory_order_acquire) == 0) return;
      Pause();
    }
    for (uint32_t left; (left = running.load(std::memory_order_acquire)) != 0;) {
      running.wait(left, std::memory_order_acquire);
    }
  }
};

thread_local ThreadTeam::State* ThreadTeam::State::inside = nullptr;

ThreadTeam::ThreadTeam(const ThreadTeamOptions& options) : state_(std::make_shared<State>()) {
  const uint32_t wanted = options.workers == 0 ? 1 : options.workers;
  for (uint32_t w = 1; w < wanted; ++w) {
    try {
      state_->threads.emplace_back([state = state_, w] { state->Work(w); });
    } catch (const std::system_error&) {
      break;
    }
    if (!options.cpus.empty()) {
      Bind(state_->threads.back(), options.cpus[w % options.cpus.size()]);
    }
  }
  state_->workers = static_cast<uint32_t>(state_->threads.size()) + 1;
}

ThreadTeam::~ThreadTeam() {
  if (state_->threads.empty() || !state_->threads.front().joinable()) return;
  state_->stop.store(true, std::memory_order_release);
  state_->Wake();
  for (std::thread& thread : state_->threads) thread.join();
}

uint32_t ThreadTeam::workers() const { return state_->workers; }

absl::Status ThreadTeam::Run(trine_worker_fn fn, void* arg) {
  // Held by value: an abandoned team's object may be gone before its last Run returns.
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
    state->running.store(state->workers - 1, std::memory_order_relaxed);
    state->run.fetch_add(1, std::memory_order_release);
    if (state->workers > 1) state->Wake();
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
  if (State::inside == nullptr || State::inside->workers == 1) return;
  State& state = *State::inside;
  const uint32_t round = state.round.load(std::memory_order_acquire);
  if (state.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == state.workers) {
    state.arrived.store(0, std::memory_order_relaxed);
    state.round.fetch_add(1, std::memory_order_release);
    return;
  }
  for (int spins = 0; state.round.load(std::memory_order_acquire) == round; ++spins) {
    if (state.threw.load(std::memory_order_acquire)) return;
    if (spins < kSpins) {
      Pause();
    } else if (!state.stop.load(std::memory_order_relaxed)) {
      std::this_thread::yield();  // more threads than processors: let the others arrive
    } else {
      std::this_thread::sleep_for(std::chrono::seconds(1));  // abandoned: wait, but quietly
    }
  }
}

void ThreadTeam::Abandon() {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    if (std::exchange(state_->abandoned, true)) return;
  }
  state_->turn.notify_all();
  state_->stop.store(true, std::memory_order_release);
  state_->Wake();  // idle workers go home; a hung one keeps its own reference to the state
  for (std::thread& thread : state_->threads) thread.detach();
}

}  // namespace trine
