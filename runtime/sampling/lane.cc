#include "runtime/sampling/lane.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"

namespace trine {
namespace {

constexpr char kThreadsVariable[] = "TRINE_CPU_LANE_THREADS";

// Measured with trine-sampler-bench: docs/sampling.md.
constexpr int64_t kPoolMinimumTokens = 128'000;

// True while this thread runs a task of any lane. A lane that waited for itself would hang.
thread_local bool inside_task = false;

int UsableProcessors() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

void NameThread(std::thread& thread, int index) {
#if defined(__linux__)
  pthread_setname_np(thread.native_handle(), absl::StrCat("trine-lane-", index).c_str());
#else
  (void)thread;
  (void)index;
#endif
}

}  // namespace

struct Lane::State {
  std::vector<std::thread> threads;

  std::mutex turn;  // held by the active Run

  // `mutex` guards all fields below except `next`.
  std::mutex mutex;
  std::condition_variable wake, done;
  const absl::FunctionRef<void(int)>* task = nullptr;
  int n = 0;
  int places = 0;  // threads that may still join the run
  int joined = 0;  // threads in the run
  bool stop = false;
  std::atomic<int> next{0};  // the first task that is not taken

  // Takes tasks until there are none. `count` does not change while a thread is in the run.
  void TakeTasks(const absl::FunctionRef<void(int)>& run_task, int count) {
    inside_task = true;
    for (int i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) run_task(i);
    inside_task = false;
  }

  void Work() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      wake.wait(lock, [this] { return stop || places > 0; });
      if (stop) return;
      --places;
      ++joined;
      const absl::FunctionRef<void(int)>& run_task = *task;
      const int count = n;
      lock.unlock();
      TakeTasks(run_task, count);
      lock.lock();
      if (--joined == 0) done.notify_one();
    }
  }
};

absl::StatusOr<int> LaneThreadsFromEnvironment() {
  const char* const text = std::getenv(kThreadsVariable);
  if (text == nullptr) return std::clamp(UsableProcessors() - 2, 1, kMaxLaneThreads);
  int threads = 0;
  if (!absl::SimpleAtoi(text, &threads) || threads < 1 || threads > kMaxLaneThreads) {
    return Invalid(kThreadsVariable, " is '", text, "': expected a whole number from 1 to ",
                   kMaxLaneThreads);
  }
  return threads;
}

absl::StatusOr<std::unique_ptr<Lane>> Lane::Create(int threads) {
  if (threads < 1 || threads > kMaxLaneThreads) {
    return Invalid("the CPU lane was asked for ", threads, " threads: expected 1 to ",
                   kMaxLaneThreads);
  }
  auto state = std::make_unique<State>();
  state->threads.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    try {
      state->threads.emplace_back([s = state.get()] { s->Work(); });
    } catch (const std::system_error&) {
      break;
    }
    NameThread(state->threads.back(), i);
  }
  return std::unique_ptr<Lane>(new Lane(std::move(state)));
}

Lane::Lane(std::unique_ptr<State> state) : state_(std::move(state)) {}

Lane::~Lane() {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

int Lane::threads() const { return static_cast<int>(state_->threads.size()); }

void Lane::Run(int n, absl::FunctionRef<void(int)> task) {
  if (n <= 1 || inside_task || state_->threads.empty()) {
    for (int i = 0; i < n; ++i) task(i);
    return;
  }
  std::lock_guard<std::mutex> turn(state_->turn);
  const int helpers = std::min(n - 1, threads());
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->task = &task;
    state_->n = n;
    state_->places = helpers;
    state_->next.store(0, std::memory_order_relaxed);
  }
  for (int i = 0; i < helpers; ++i) state_->wake.notify_one();
  state_->TakeTasks(task, n);
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->places = 0;  // a thread that has not woken yet comes too late
  state_->done.wait(lock, [this] { return state_->joined == 0; });
}

void Lane::RunSampling(int n, int32_t tokens_each, absl::FunctionRef<void(int)> task) {
  if (PoolPays(n, tokens_each)) return Run(n, task);
  for (int i = 0; i < n; ++i) task(i);
}

bool Lane::PoolPays(int n, int32_t tokens_each) {
  return n > 1 && int64_t{n} * tokens_each >= kPoolMinimumTokens;
}

}  // namespace trine
