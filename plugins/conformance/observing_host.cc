#include "plugins/conformance/observing_host.h"

#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine::conformance {
namespace {

// The host whose worker function the thread is inside of.
thread_local const ObservingHost* inside = nullptr;

std::function<void()> sign_of_life;

}  // namespace

void OnSignOfLife(std::function<void()> sign) { sign_of_life = std::move(sign); }

ObservingHost::ObservingHost(uint32_t workers) {
  host_.struct_size = sizeof(host_);
  host_.abi_version = TRINE_ABI_VERSION;
  host_.worker_count = workers;
  host_.self = this;
  host_.log = &Log;
  host_.parallel_run = &ParallelRun;
  host_.barrier = &Barrier;
  host_.profiling = &profiling_;
  host_.op_done = &OpDone;
  for (uint32_t w = 1; w < workers; ++w) threads_.emplace_back([this, w] { WorkerLoop(w); });
}

ObservingHost::~ObservingHost() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::vector<std::string> ObservingHost::TakeBreaches() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(breaches_, {});
}

void ObservingHost::NoteBreach(const std::string& what) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (breaches_.size() < 16) breaches_.push_back(what);
}

void ObservingHost::Log(void* self, uint32_t level, const char* message) {
  if (sign_of_life) sign_of_life();
  auto* host = static_cast<ObservingHost*>(self);
  if (level < TRINE_LOG_DEBUG || level > TRINE_LOG_ERROR) {
    host->NoteBreach(absl::StrCat("logged with level ", level, ", which is no level"));
  }
  if (message == nullptr) host->NoteBreach("logged a null message");
}

trine_status ObservingHost::ParallelRun(void* self, trine_worker_fn fn, void* arg) {
  auto* host = static_cast<ObservingHost*>(self);
  if (inside == host) {
    host->NoteBreach("called parallel_run from inside parallel_run");
    return TRINE_FAILED_PRECONDITION;
  }
  if (host->refuse_) {
    ++host->refused_runs_;
    return TRINE_RESOURCE_EXHAUSTED;
  }
  std::lock_guard<std::mutex> one_at_a_time(host->run_mutex_);
  ++host->parallel_runs_;
  {
    std::lock_guard<std::mutex> lock(host->mutex_);
    host->fn_ = fn;
    host->arg_ = arg;
    host->running_ = host->workers();
    host->at_barrier_ = 0;
    host->broken_ = false;
    ++host->generation_;
  }
  host->wake_.notify_all();
  host->Work(0);
  std::unique_lock<std::mutex> lock(host->mutex_);
  host->done_.wait(lock, [host] { return host->running_ == 0; });
  return host->broken_ ? TRINE_INTERNAL : TRINE_OK;
}

void ObservingHost::Barrier(void* self) {
  auto* host = static_cast<ObservingHost*>(self);
  if (inside != host) {
    host->NoteBreach("called barrier outside of parallel_run");
    return;
  }
  std::unique_lock<std::mutex> lock(host->mutex_);
  const uint64_t mine = host->barrier_generation_;
  if (++host->at_barrier_ == host->workers()) {
    host->at_barrier_ = 0;
    ++host->barrier_generation_;
    host->barrier_.notify_all();
    return;
  }
  host->barrier_.wait(lock, [&] { return host->barrier_generation_ != mine || host->broken_; });
}

void ObservingHost::OpDone(void* self, const char*, uint64_t) {
  static_cast<ObservingHost*>(self)->NoteBreach("called op_done though profiling is 0");
}

void ObservingHost::WorkerLoop(uint32_t worker) {
  uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
    }
    Work(worker);
  }
}

void ObservingHost::Work(uint32_t worker) {
  inside = this;
  bool threw = false;
  if (const Start start = start_; start != Start::kTogether) {
    const uint32_t turn = start == Start::kFirstFirst ? worker : workers() - 1 - worker;
    std::this_thread::sleep_for(turn * std::chrono::milliseconds(3));
  }
  try {
    fn_(arg_, worker, workers());
  } catch (...) {
    threw = true;
    NoteBreach("threw an exception across the ABI from a worker function of parallel_run");
  }
  inside = nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  broken_ |= threw;
  if (threw) barrier_.notify_all();
  if (--running_ == 0) done_.notify_all();
}

}  // namespace trine::conformance
