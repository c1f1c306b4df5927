// Opens the plugin under test: a host, a backend, one of its devices, and handles that free
// themselves. Handles must be freed before their session.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plugins/conformance/trial.h"
#include "trine/backend.h"

namespace trine::conformance {

// Sets a function that is called whenever a plugin logs a message, from any thread. A plugin that
// logs does not hang, however long its call takes. Applies to all hosts of the process; call it
// before the first one is made.
void OnSignOfLife(std::function<void()> sign);

// The host for a plugin under test: a plain thread team that watches how the plugin uses it.
// Results must not depend on the size of the team, so the kit opens plugins with several. Owns its
// threads; must outlive the backend that was opened with it. The trine_host functions may be called
// from any thread.
class ObservingHost {
 public:
  explicit ObservingHost(uint32_t workers);
  ~ObservingHost();
  ObservingHost(const ObservingHost&) = delete;
  ObservingHost& operator=(const ObservingHost&) = delete;

  const trine_host* get() const { return &host_; }
  uint32_t workers() const { return host_.worker_count; }

  // While set, parallel_run returns RESOURCE_EXHAUSTED and runs nothing.
  void RefuseParallelRun(bool refuse) { refuse_ = refuse; }
  // Sets the order in which workers start. If they start one after the other, a missing barrier
  // shows: a worker that does not wait for the others then reads values that they have not written
  // yet.
  enum class Start { kTogether, kFirstFirst, kLastFirst };
  void StartWorkers(Start start) { start_ = start; }
  int refused_runs() const { return refused_runs_; }
  // Returns the breaches of the host's rules since the last call: reentrant runs, barriers outside
  // of a run, unknown log levels, times that were not asked for, exceptions of a worker function.
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
  std::atomic<int> refused_runs_{0};

  std::mutex mutex_;  // guards the members below
  std::condition_variable wake_;
  std::condition_variable done_;
  std::condition_variable barrier_;
  trine_worker_fn fn_ = nullptr;
  void* arg_ = nullptr;
  uint64_t generation_ = 0;  // the number of runs
  uint32_t running_ = 0;
  uint32_t at_barrier_ = 0;
  uint64_t barrier_generation_ = 0;
  bool broken_ = false;  // a worker threw: the others must not wait for it at a barrier
  bool stop_ = false;
  std::vector<std::string> breaches_;
};

using BufferPtr = std::unique_ptr<trine_buffer, std::function<void(trine_buffer*)>>;
using PlanPtr = std::unique_ptr<trine_plan, std::function<void(trine_plan*)>>;
using TimelinePtr = std::unique_ptr<trine_timeline, std::function<void(trine_timeline*)>>;

// An open device of the plugin under test. Its calls note failures in a trial.
class Session {
 public:
  // Returns null if a call fails, and notes the failure in the trial.
  static std::unique_ptr<Session> Open(Trial& trial, Runner& runner, const trine_plugin& table,
                                       uint32_t device_index, uint32_t workers,
                                       const std::string& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const trine_plugin& table() const { return table_; }
  trine_backend* backend() const { return backend_; }
  trine_device* device() const { return device_; }
  const trine_device_info& info() const { return info_; }
  ObservingHost& host() { return *host_; }

  // Calls a function of the table, whose last argument is a place for the error.
  template <class Function, class... Args>
  Answer Call(Trial& trial, const char* name, Function trine_plugin::*function, Args... args) {
    return trial.Call(name, [&](trine_error* err) { return (table_.*function)(args..., err); });
  }

  // Returns null if the allocation fails, and notes the failure in the trial.
  BufferPtr Alloc(Trial& trial, uint64_t bytes, uint32_t memory = TRINE_MEMORY_IO);
  Answer TryAlloc(Trial& trial, uint64_t bytes, uint32_t memory, BufferPtr* out);
  Answer Write(Trial& trial, trine_buffer* buffer, uint64_t offset, const void* src,
               uint64_t bytes) {
    return Call(trial, "buffer_write", &trine_plugin::buffer_write, buffer, offset, src, bytes);
  }
  Answer Read(Trial& trial, trine_buffer* buffer, uint64_t offset, void* dst, uint64_t bytes) {
    return Call(trial, "buffer_read", &trine_plugin::buffer_read, buffer, offset, dst, bytes);
  }
  TimelinePtr NewTimeline(Trial& trial, uint64_t initial);
  Answer Wait(Trial& trial, trine_timeline* timeline, uint64_t value, uint64_t timeout_ns) {
    return Call(trial, "timeline_wait", &trine_plugin::timeline_wait, timeline, value, timeout_ns);
  }
  Answer CreatePlan(Trial& trial, const trine_plan_desc& desc, PlanPtr* out);
  // Tries to make a plan that must be refused.
  void ExpectNoPlan(Trial& trial, const trine_graph* graph,
                    const std::vector<trine_binding>& bindings, const std::string& what);
  BufferPtr Own(trine_buffer* buffer);

  // Fails the trial with the breaches that the host has seen.
  void ReportBreaches(Trial& trial);

 private:
  Session(Runner& runner, const trine_plugin& table, uint32_t workers)
      : runner_(runner), table_(table), host_(std::make_unique<ObservingHost>(workers)) {}

  template <class F>
  void CallVoid(const char* function, F call) {
    try {
      call();
    } catch (...) {
      runner_.NoteThrown(function);
    }
  }

  Runner& runner_;
  const trine_plugin& table_;
  std::unique_ptr<ObservingHost> host_;
  trine_backend* backend_ = nullptr;
  trine_device* device_ = nullptr;
  trine_device_info info_{};
};

// The sessions of one device. Opens each on first use, because opening a GPU can take a second.
class Sessions {
 public:
  Sessions(Runner& runner, const trine_plugin& table, const KitOptions& options, uint32_t device);

  // Returns the session with that many workers, owned here. Returns null if it can't be opened, and
  // notes the failure.
  Session* Get(Trial& trial, uint32_t workers);
  Session* Get(Trial& trial) { return Get(trial, worker_counts_.back()); }
  const std::vector<uint32_t>& worker_counts() const { return worker_counts_; }

 private:
  Runner& runner_;
  const trine_plugin& table_;
  const KitOptions& options_;
  uint32_t device_;
  std::vector<uint32_t> worker_counts_;
  std::map<uint32_t, std::unique_ptr<Session>> open_;
};

}  // namespace trine::conformance
