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
  uint32_t workers = 1;

  std::mutex mutex;
  std::condition_variable turn;
  bool busy = false;  // one Run at a time; guarded by mutex

  // Published by Run before `generation` is raised, read by workers after they saw it.
  trine_worker_fn fn = nullptr;
  void* arg = nullptr;
  std::atomic<uint32_t> generation{0};
  std::atomic<uint32_t> running{0};
  std::atomic<bool> stop{false};
  std::atomic<bool> abandoned{false};

  // A barrier that any number of rounds can use: the last to arrive opens the next round.
  std::atomic<uint32_t> arrived{0};
  std::atomic<uint32_t> round{0};

  // The team whose worker this thread is at the moment.
  static thread_local const State* inside;

  void Work(uint32_t worker) {
    uint32_t seen = 0;
    for (;;) {
      for (int i = 0; i < kSpins && generation.load(std::memory_order_acquire) == seen; ++i)
        Pause();
      generation.wait(seen, std::memory_order_acquire);
      seen = generation.load(std::memory_order_acquire);
      if (stop.load(std::memory_order_acquire)) return;
      inside = this;
      fn(arg, worker, workers);
      inside = nullptr;
      if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) running.notify_one();
    }
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

thread_local const ThreadTeam::State* ThreadTeam::State::inside = nullptr;

ThreadTeam::ThreadTeam(const ThreadTeamOptions& options) : state_(std::make_shared<State>()) {
  const uint32_t wanted = options.workers == 0 ? 1 : options.workers;
  // Set before any thread reads it; lowered below only when a thread could not be made, and then
  // no thread has work yet.
  state_->threads.reserve(wanted - 1);
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
  if (state_->abandoned.load()) return;
  state_->stop.store(true, std::memory_order_release);
  state_->generation.fetch_add(1, std::memory_order_release);
  state_->generation.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

uint32_t ThreadTeam::workers() const { return state_->workers; }

absl::Status ThreadTeam::Run(trine_worker_fn fn, void* arg) {
  // By value: an abandoned team's object may be gone before its last Run returns.
  const std::shared_ptr<State> state = state_;
  if (State::inside != nullptr) {
    return absl::FailedPreconditionError("parallel_run was called from inside parallel_run");
  }
  {
    std::unique_lock<std::mutex> lock(state->mutex);
    state->turn.wait(lock, [&] { return !state->busy || state->abandoned.load(); });
    if (state->abandoned.load()) return absl::UnavailableError("the thread team was given up");
    state->busy = true;
  }
  state->fn = fn;
  state->arg = arg;
  if (state->workers > 1) {
    state->running.store(state->workers - 1, std::memory_order_relaxed);
    state->generation.fetch_add(1, std::memory_order_release);
    state->generation.notify_all();
  }
  State::inside = state.get();
  fn(arg, 0, state->workers);
  State::inside = nullptr;
  state->WaitAllDone();
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->busy = false;
  }
  state->turn.notify_one();
  return absl::OkStatus();
}

void ThreadTeam::Barrier() {
  State& state = *state_;
  if (State::inside != &state || state.workers == 1) return;
  const uint32_t round = state.round.load(std::memory_order_acquire);
  if (state.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == state.workers) {
    state.arrived.store(0, std::memory_order_relaxed);
    state.round.fetch_add(1, std::memory_order_release);
    return;
  }
  for (int spins = 0; state.round.load(std::memory_order_acquire) == round; ++spins) {
    if (spins < kSpins) {
      Pause();
    } else if (!state.abandoned.load(std::memory_order_relaxed)) {
      std::this_thread::yield();  // more threads than processors: let the others arrive
    } else {
      std::this_thread::sleep_for(std::chrono::seconds(1));  // for ever, but quietly
    }
  }
}

void ThreadTeam::Abandon() {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->abandoned.exchange(true)) return;
  }
  state_->turn.notify_all();
  state_->stop.store(true, std::memory_order_release);
  state_->generation.fetch_add(1, std::memory_order_release);
  state_->generation.notify_all();  // idle workers go home; the hung one keeps its own reference
  for (std::thread& thread : state_->threads) thread.detach();
}

}  // namespace trine
