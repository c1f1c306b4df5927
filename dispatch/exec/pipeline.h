// Runs jobs through stages. Each stage has its own thread, so several jobs are under way at once,
// in different stages. Jobs never overtake each other, so what a stage keeps between jobs (a KV
// cache) is written in the order in which the jobs were submitted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dispatch/exec/trace.h"

namespace trine {

class PipelineJob {
 public:
  virtual ~PipelineJob() = default;
  // Does the work of a stage, on the stage's thread. Called for one stage after the other, as long
  // as each call returns OK.
  virtual absl::Status RunStage(size_t stage) = 0;
  // Called once, as the last call. `status` is OK if the job passed all stages; otherwise it is the
  // error that ended the job, in stage `stage`. Called on a stage's thread, or on a thread that
  // calls Submit, Abandon or the pipeline's destructor.
  virtual void Done(const absl::Status& status, size_t stage) = 0;
};

struct PipelineOptions {
  std::vector<std::string> stages;  // names; at least one
  size_t waiting = 1;               // the most jobs that may wait before a stage
  // true: the thread that calls Submit runs the job, one at a time. Needs a single stage: there the
  // calling thread would only wait for the stage's thread.
  bool on_caller = false;
  // Receives the times at which stages wait; each stage has one of `tracks`. null: no tracing.
  std::shared_ptr<Trace> trace = nullptr;
  std::vector<Trace::Track> tracks = {};
};

// The counts and times of a stage so far.
struct StageCounters {
  uint64_t jobs = 0;
  uint64_t busy_ns = 0;     // in RunStage
  uint64_t blocked_ns = 0;  // with a job for which the next stage has no room
  uint64_t waiting_ns = 0;  // without a job, while other stages have one
};

class Pipeline {
 public:
  // Returns RESOURCE_EXHAUSTED if the system refuses threads.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Create(PipelineOptions options);
  // Waits until all submitted jobs have ended, unless Abandon was called.
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Hands a job to the first stage. Waits while there is no room before it. After a job has failed,
  // the jobs submitted after it end with ABORTED, because the results that they build on are
  // missing; the jobs before it complete. Call from any thread, but not from a job.
  void Submit(std::shared_ptr<PipelineJob> job);

  // A stage that is in RunStage, and since how long.
  struct Running {
    size_t stage;
    std::chrono::steady_clock::duration time;
  };
  // Returns the stages that are in RunStage, for a watchdog.
  absl::InlinedVector<Running, 8> AllRunning() const;

  // Gives up the stages' threads, which may never return from a job. Calls Done for each job that
  // has not ended, with `why` and the stage that the job is in or waits for. A thread that does
  // return ends itself; the objects that it uses live until then.
  void Abandon(const absl::Status& why);

  std::vector<StageCounters> counters() const;

 private:
  struct State;
  explicit Pipeline(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
  std::vector<std::thread> threads_;
};

}  // namespace trine
