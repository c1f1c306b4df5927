// Jobs through stages, each of which has a thread of its own: while one job is in the last stage
// others are in those before it. Jobs never overtake each other, so what a stage keeps between jobs
// (a KV cache) is written in the order in which they were submitted.
#ifndef TRINE_DISPATCH_PIPELINE_H_
#define TRINE_DISPATCH_PIPELINE_H_

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
#include "dispatch/trace.h"

namespace trine {

class PipelineJob {
 public:
  virtual ~PipelineJob() = default;
  // On the stage's thread, stage by stage as long as each gives OK.
  virtual absl::Status RunStage(size_t stage) = 0;
  // Once and last: the job came through, or else what ended it, and the stage that it ended in. On
  // a stage's thread, or on one that calls Submit, Abandon or the pipeline's destructor.
  virtual void Done(const absl::Status& status, size_t stage) = 0;
};

struct PipelineOptions {
  std::vector<std::string> stages;  // their names; at least one
  size_t waiting = 1;               // jobs that may wait before a stage
  // Submit runs the job itself, one at a time. For one stage alone, where the thread that would
  // wait may as well work.
  bool on_caller = false;
  // Where the time is shown that stages wait, in a track for each; null: nowhere.
  std::shared_ptr<Trace> trace = nullptr;
  std::vector<Trace::Track> tracks = {};
};

// What a stage has done so far.
struct StageCounters {
  uint64_t jobs = 0;
  uint64_t busy_ns = 0;     // in RunStage
  uint64_t blocked_ns = 0;  // with a job that the next stage has no room for
  uint64_t waiting_ns = 0;  // without a job, while there are jobs in other stages
};

class Pipeline {
 public:
  // RESOURCE_EXHAUSTED when the system refuses threads.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Create(PipelineOptions options);
  // Lets the jobs that are under way come through, unless it was abandoned.
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Waits while there is no room before the first stage. When a job has failed, those behind it do
  // not run, as what they build on is missing: they and whatever is submitted later end with
  // ABORTED. Those before it come through. From any thread, but not from a job.
  void Submit(std::shared_ptr<PipelineJob> job);

  // The stages that run a job now, and for how long. For a watchdog.
  struct Running {
    size_t stage;
    std::chrono::steady_clock::duration time;
  };
  absl::InlinedVector<Running, 8> AllRunning() const;

  // Gives up threads that may never return. Each job that has not ended is told `why`, with the
  // stage it is in or waits for; threads that do come back end, and keep what they use until then.
  void Abandon(const absl::Status& why);

  std::vector<StageCounters> counters() const;

 private:
  struct State;
  explicit Pipeline(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
  std::vector<std::thread> threads_;
};

}  // namespace trine

#endif  // TRINE_DISPATCH_PIPELINE_H_
