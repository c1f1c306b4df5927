// The host a plugin under test is opened with: a plain thread team that watches how it is used.
//
// Results must not depend on the size of the team, so the kit opens plugins with several. Owns its
// threads; must outlive the backend that was opened with it. The trine_host functions may be called
// from any thread.
#ifndef TRINE_PLUGINS_CONFORMANCE_OBSERVING_HOST_H_
#define TRINE_PLUGINS_CONFORMANCE_OBSERVING_HOST_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "trine/backend.h"

namespace trine::conformance {

// Called, from any thread, whenever a plugin logs something: it is alive, however long a call
// takes. Of all hosts of the process; set before there is one.
void OnSignOfLife(std::function<void()> sign);

class ObservingHost {
 public:
  explicit ObservingHost(uint32_t workers);
  ~ObservingHost();
  ObservingHost(const ObservingHost&) = delete;
  ObservingHost& operator=(const ObservingHost&) = delete;

  const trine_host* get() const { return &host_; }
  uint32_t workers() const { return host_.worker_count; }

  // While set, parallel_run answers RESOURCE_EXHAUSTED and runs nothing.
  void RefuseParallelRun(bool refuse) { refuse_ = refuse; }
  // While set, workers start one after the other, the first or the last of them first: whoever does
  // not wait for the others where it must then reads what they have not written yet.
  enum class Start { kTogether, kFirstFirst, kLastFirst };
  void StartWorkers(Start start) { start_ = start; }
  int parallel_runs() const { return parallel_runs_; }
  int refused_runs() const { return refused_runs_; }
  // Breaches of the host's own rules since the last call: reentrant runs, barriers outside of a
  // run, unknown log levels, times nobody asked for, exceptions out of a worker function.
  std::vector<std::string> TakeBreaches();

 private:
  static void Log(void* self, uint32_t level, const char* message);
  static trine_status ParallelRun(void* self, trine_worker_fn fn, void* arg);
  static void Barrier(void* self);
  static void OpDone(void* self, const char* name, uint64_t nanoseconds);

  void WorkerLoop(uint32_t worker);
  void Work(uint32_t worker);
  void NoteBreach(const std::string& what);

  trine_host host_{};
  uint32_t profiling_ = 0;
  std::vector<std::thread> threads_;
  std::mutex run_mutex_;  // one parallel_run at a time
  std::atomic<bool> refuse_{false};
  std::atomic<Start> start_{Start::kTogether};
  std::atomic<int> parallel_runs_{0};
  std::atomic<int> refused_runs_{0};

  std::mutex mutex_;  // guards all below
  std::condition_variable wake_;
  std::condition_variable done_;
  std::condition_variable barrier_;
  trine_worker_fn fn_ = nullptr;
  void* arg_ = nullptr;
  uint64_t generation_ = 0;  // of runs
  uint32_t running_ = 0;
  uint32_t at_barrier_ = 0;
  uint64_t barrier_generation_ = 0;
  bool broken_ = false;  // a worker threw: the others must not wait for it at a barrier
  bool stop_ = false;
  std::vector<std::string> breaches_;
};

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_OBSERVING_HOST_H_
