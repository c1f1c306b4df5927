#include "dispatch/exec/pipeline.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

// A job with the number of jobs submitted before it.
struct Job {
  std::shared_ptr<PipelineJob> job;
  uint64_t number = 0;
};

// The shortest wait that gets an event: in a shorter wait a thread is only waking up.
constexpr std::chrono::microseconds kLeastShown(1);

uint64_t Ns(Clock::duration time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

// Turns exceptions into a status: an exception that leaves a stage's thread would end the process.
absl::Status RunQuietly(PipelineJob& job, size_t stage) {
  try {
    return job.RunStage(stage);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& e) {
    return absl::InternalError(e.what());
  }
}

}  // namespace

// Shared with the threads, which outlive a pipeline that was abandoned.
struct Pipeline::State {
  struct Stage {
    std::vector<Job> waiting;  // few; the first goes next
    Job running;               // also while it waits for room before the next stage
    Clock::time_point since;
    bool in_job = false;  // in RunStage, not waiting for room
    bool ended = false;   // the stage's thread has run its last job
    // Set while the stage has no job and others have some.
    std::optional<Clock::time_point> waits_since;
    StageCounters counters;
    std::condition_variable changed;  // a job arrived, there is room, or no more jobs will come
  };

  explicit State(PipelineOptions o) : options(std::move(o)), stages(options.stages.size()) {}

  // Queues a job before a stage, waiting for room. Returns false when the pipeline was abandoned.
  bool Put(std::unique_lock<std::mutex>& lock, size_t stage, const Job& job);
  void End(std::unique_lock<std::mutex>& lock, const Job& job, const absl::Status& status,
           size_t stage);
  void RunOne(std::unique_lock<std::mutex>& lock, size_t stage);
  void EndWait(size_t stage, Clock::time_point now);
  void Show(size_t stage, const char* what, Clock::time_point begin, Clock::time_point end) const;
  void Work(size_t stage);

  const PipelineOptions options;
  std::mutex mutex;
  std::vector<Stage> stages;
  bool closed = false;  // no more jobs will be submitted
  uint64_t submitted = 0;
  size_t inside = 0;  // jobs that were queued before the first stage and have not ended
  // The first job that failed; later ones do not run.
  uint64_t first_failed = std::numeric_limits<uint64_t>::max();
  bool abandoned = false;  // threads end as soon as they return
};

bool Pipeline::State::Put(std::unique_lock<std::mutex>& lock, size_t stage, const Job& job) {
  Stage& s = stages[stage];
  s.changed.wait(lock, [&] { return abandoned || s.waiting.size() < options.waiting; });
  if (abandoned) return false;
  s.waiting.push_back(job);
  if (stage == 0) {
    s.waiting.back().number = submitted++;
    if (++inside == 1) {
      for (Stage& other : stages) other.waits_since = Clock::now();
    }
  }
  s.changed.notify_all();
  return true;
}

void Pipeline::State::Show(size_t stage, const char* what, Clock::time_point begin,
                           Clock::time_point end) const {
  if (options.trace == nullptr || end - begin < kLeastShown) return;
  options.trace->Add(options.tracks[stage], what, begin, end);
}

void Pipeline::State::EndWait(size_t stage, Clock::time_point now) {
  Stage& s = stages[stage];
  if (!s.waits_since) return;
  s.counters.waiting_ns += Ns(now - *s.waits_since);
  Show(stage, "bubble", *s.waits_since, now);
  s.waits_since.reset();
}

// Unlocks while Done runs: Done may submit more jobs, or wait for a lock that a submitter holds.
void Pipeline::State::End(std::unique_lock<std::mutex>& lock, const Job& job,
                          const absl::Status& status, size_t stage) {
  lock.unlock();
  job.job->Done(status, stage);
  lock.lock();
}

void Pipeline::State::RunOne(std::unique_lock<std::mutex>& lock, size_t stage) {
  Stage& s = stages[stage];
  const Job job = s.running = s.waiting.front();
  s.waiting.erase(s.waiting.begin());
  s.changed.notify_all();  // there is room
  absl::Status status;
  if (job.number >= first_failed) {
    status = absl::AbortedError("a pass before this one has failed");
  } else {
    s.since = Clock::now();
    EndWait(stage, s.since);
    s.in_job = true;
    lock.unlock();
    status = RunQuietly(*job.job, stage);
    lock.lock();
    s.in_job = false;
    if (abandoned) return;  // Abandon has called Done
    ++s.counters.jobs;
    s.counters.busy_ns += Ns(Clock::now() - s.since);
    if (!status.ok()) first_failed = std::min(first_failed, job.number);
  }
  const bool goes_on = status.ok() && stage + 1 < stages.size();
  if (goes_on) {
    const bool full = stages[stage + 1].waiting.size() >= options.waiting;
    const Clock::time_point begin = Clock::now();
    if (!Put(lock, stage + 1, job)) return;
    if (full) {
      const Clock::time_point end = Clock::now();
      s.counters.blocked_ns += Ns(end - begin);
      Show(stage, "blocked", begin, end);
    }
  }
  s.running = {};
  const Clock::time_point now = Clock::now();
  if (!s.waits_since) s.waits_since = now;
  if (!goes_on && --inside == 0) {  // the pipeline is empty: stages wait for nothing
    for (size_t i = 0; i < stages.size(); ++i) EndWait(i, now);
  }
  if (!goes_on) End(lock, job, status, stage);
}

void Pipeline::State::Work(size_t stage) {
  std::unique_lock lock(mutex);
  Stage& s = stages[stage];
  while (true) {
    const auto last = [&] { return stage == 0 ? closed : stages[stage - 1].ended; };
    s.changed.wait(lock, [&] { return abandoned || !s.waiting.empty() || last(); });
    if (abandoned) return;
    if (s.waiting.empty()) break;
    RunOne(lock, stage);
    if (abandoned) return;
  }
  s.ended = true;
  if (stage + 1 < stages.size()) stages[stage + 1].changed.notify_all();
}

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Create(PipelineOptions options) {
  std::unique_ptr<Pipeline> pipeline(new Pipeline(std::make_shared<State>(std::move(options))));
  const std::shared_ptr<State>& state = pipeline->state_;
  if (state->options.on_caller) return pipeline;
  try {
    for (size_t i = 0; i < state->stages.size(); ++i) {
      pipeline->threads_.emplace_back([state, i] { state->Work(i); });
#if defined(__linux__)
      const std::string name = absl::StrCat("trine-stage-", i % 1000);
      pthread_setname_np(pipeline->threads_.back().native_handle(), name.c_str());
#endif
    }
  } catch (const std::system_error& e) {
    pipeline->Abandon(absl::AbortedError("the pipeline was never whole"));
    return absl::ResourceExhaustedError(
        absl::StrCat("no thread for ", state->options.stages[pipeline->threads_.size()],
                     " could be started: ", e.what()));
  }
  return pipeline;
}

Pipeline::~Pipeline() {
  bool abandoned;
  {
    std::lock_guard lock(state_->mutex);
    state_->closed = true;
    abandoned = state_->abandoned;
    state_->stages.front().changed.notify_all();
  }
  for (std::thread& thread : threads_) abandoned ? thread.detach() : thread.join();
}

void Pipeline::Submit(std::shared_ptr<PipelineJob> job) {
  std::unique_lock lock(state_->mutex);
  const Job entering{std::move(job)};
  if (!state_->Put(lock, 0, entering)) {
    state_->End(lock, entering, absl::AbortedError("the pipeline was abandoned"), 0);
  } else if (state_->options.on_caller) {
    state_->RunOne(lock, 0);
  }
}

absl::InlinedVector<Pipeline::Running, 8> Pipeline::AllRunning() const {
  std::lock_guard lock(state_->mutex);
  absl::InlinedVector<Running, 8> running;
  for (size_t i = 0; i < state_->stages.size(); ++i) {
    const State::Stage& s = state_->stages[i];
    if (s.in_job) running.push_back({i, Clock::now() - s.since});
  }
  return running;
}

void Pipeline::Abandon(const absl::Status& why) {
  std::vector<std::pair<Job, size_t>> left;
  {
    std::lock_guard lock(state_->mutex);
    if (state_->abandoned) return;
    state_->abandoned = true;
    for (size_t i = state_->stages.size(); i-- > 0;) {  // the oldest first
      State::Stage& s = state_->stages[i];
      if (s.running.job != nullptr) left.emplace_back(std::move(s.running), i);
      s.running = {};
      for (Job& job : s.waiting) left.emplace_back(std::move(job), i);
      s.waiting.clear();
      s.changed.notify_all();
    }
  }
  for (const auto& [job, stage] : left) job.job->Done(why, stage);
}

std::vector<StageCounters> Pipeline::counters() const {
  std::lock_guard lock(state_->mutex);
  std::vector<StageCounters> all;
  for (const State::Stage& s : state_->stages) all.push_back(s.counters);
  return all;
}

}  // namespace trine
