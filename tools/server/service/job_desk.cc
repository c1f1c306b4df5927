#include "tools/server/service/job_desk.h"

#include <pthread.h>

#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace trine::server {
namespace {

constexpr int64_t kErrandThreads = 2;

}  // namespace

void Job::Run(JobQueue* queue, const JobQueue::Turn& turn) {
  {
    std::lock_guard lock(mutex_);
    if (!waited_) waited_ = turn.waited;
    if (!open_) open_ = parts();
  }
  const AddParts add = [&](int64_t parts) {
    {
      std::lock_guard lock(mutex_);
      *open_ += parts;
    }
    if (queue->AddParts(turn.number, parts)) return absl::OkStatus();
    std::lock_guard lock(mutex_);
    *open_ -= parts;
    return absl::UnavailableError("the server is stopping, or out of memory");
  };
  absl::Status status;
  try {
    status = Interruption();
    if (status.ok()) status = Work(add);
    // If memory runs out, that is the server's fault, not the client's: 503, not 429.
    if (absl::IsResourceExhausted(status)) status = absl::UnavailableError(status.message());
  } catch (const std::bad_alloc&) {
    status = absl::UnavailableError("the server is out of memory");
  } catch (const std::exception& e) {
    status = absl::InternalError(e.what());
  }
  End(1 + (status.ok() ? 0 : queue->Remove(turn.number)), status);
}

void Job::Refuse(int64_t parts, const absl::Status& status) noexcept { End(parts, status); }

void Job::End(int64_t parts, const absl::Status& status) noexcept {
  bool last = false;
  {
    std::lock_guard lock(mutex_);
    if (!open_) open_ = this->parts();
    if (!status.ok() && failure_.ok()) failure_ = status;
    *open_ -= parts;
    last = *open_ <= 0;
  }
  try {
    if (last) {
      Finish(failure_);
    } else if (!status.ok()) {
      Cancel(status);
    }
  } catch (const std::exception&) {
    // There is no memory to send the error with: the connection is cut.
  }
}

void Job::Cancel(const absl::Status& why) {
  {
    std::lock_guard lock(mutex_);
    if (why_.ok()) why_ = why;
  }
  stopped_ = true;
  OnCancel();
}

std::optional<std::chrono::nanoseconds> Job::waited() const {
  std::lock_guard lock(mutex_);
  return waited_;
}

absl::Status Job::Interruption() const {
  if (reply_->exchange().gone()) return absl::CancelledError("the client has gone");
  if (Reply::Clock::now() - reply_->begin() > time_) {
    return absl::DeadlineExceededError(absl::StrCat("the answer has taken longer than the ",
                                                    time_.count(), " s that one may take"));
  }
  if (!stopped_) return absl::OkStatus();
  std::lock_guard lock(mutex_);
  return why_;
}

JobDesk::JobDesk(const JobQueueOptions& options, std::chrono::seconds time,
                 std::function<void()> tick)
    : time_(time),
      tick_(std::move(tick)),
      jobs_(options),
      errands_({kErrandThreads, options.waiting, options.waiting_per_client, "trine-errand"}),
      preparations_({1, options.waiting, options.waiting_per_client, "trine-prepare"}),
      keeper_([this] { KeepTime(); }) {
  pthread_setname_np(keeper_.native_handle(), "trine-time");
}

JobDesk::~JobDesk() { Stop(); }

void JobDesk::KeepTime() {
  constexpr std::chrono::milliseconds kTick(500);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_now_.wait_for(lock, kTick, [&] { return stopping_; })) {
    lock.unlock();
    try {
      jobs_.DropOlder(time_);
      errands_.DropOlder(time_);
      if (tick_) tick_();
    } catch (const std::bad_alloc&) {
      // The next tick tries again.
    }
    lock.lock();
  }
}

void JobDesk::Take(const std::string& client, const std::shared_ptr<Job>& job) {
  job->exchange().ForgetBody();
  {
    std::lock_guard lock(mutex_);
    taken_[job.get()] = {job};
  }
  // `forget` keeps the job alive until its entry is erased, so that no other job can have its
  // address before that.
  const auto forget = std::shared_ptr<void>(nullptr, [this, job](void*) {
    std::lock_guard lock(mutex_);
    taken_.erase(job.get());
  });
  uint64_t number = 0;
  const absl::Status added = jobs_.Add(
      client, job->parts(),
      {[this, job, forget](const JobQueue::Turn& turn) { job->Run(&jobs_, turn); },
       [job](int64_t parts, const absl::Status& why) { job->Refuse(parts, why); }, job->arrived()},
      &number);
  if (!added.ok()) return job->Refuse(job->parts(), added);
  {
    std::lock_guard lock(mutex_);
    if (const auto found = taken_.find(job.get()); found != taken_.end()) {
      found->second.number = number;
    }
  }
  if (job->prepares() && jobs_.IsFull()) {
    // A job whose preparation can't be added is prepared when its turn comes.
    uint64_t ignored = 0;
    preparations_
        .Add(client, 1, {[weak = std::weak_ptr<Job>(job)](const JobQueue::Turn&) {
               if (const auto held = weak.lock()) held->Prepare();
             }},
             &ignored)
        .IgnoreError();
  }
  job->exchange().OnGone([this, weak = std::weak_ptr<Job>(job)] {
    LetGo(weak, absl::CancelledError("the client has gone"));
  });
}

void JobDesk::LetGo(const std::weak_ptr<Job>& job, const absl::Status& why) {
  const std::shared_ptr<Job> held = job.lock();
  if (held == nullptr) return;
  uint64_t number = 0;
  {
    std::lock_guard lock(mutex_);
    const auto found = taken_.find(held.get());
    if (found != taken_.end()) number = found->second.number;
  }
  held->Cancel(why);
  if (number == 0) return;
  if (const int64_t parts = jobs_.Remove(number); parts > 0) held->Refuse(parts, why);
}

void JobDesk::Run(const std::string& client, std::unique_ptr<Reply> reply, Errand errand) {
  // std::function must be copyable, so it can't own a unique_ptr.
  const auto arrived = reply->begin();
  const auto held = std::make_shared<std::unique_ptr<Reply>>(std::move(reply));
  uint64_t number = 0;
  const absl::Status added = errands_.Add(
      client, 1,
      {[errand = std::move(errand), held](const JobQueue::Turn&) { errand(std::move(*held)); },
       [held](int64_t, const absl::Status& why) { (*held)->Error(why); }, arrived},
      &number);
  if (!added.ok()) (*held)->Error(added);
}

void JobDesk::Finish(std::chrono::steady_clock::time_point until,
                     const std::function<bool()>& hurry) {
  constexpr std::chrono::milliseconds kLook(50);
  for (JobQueue* queue : {&errands_, &jobs_}) {
    queue->Close();
    while (std::chrono::steady_clock::now() < until && !(hurry && hurry())) {
      if (queue->WaitUntilIdle(kLook)) break;
    }
  }
}

bool JobDesk::IsIdle() const {
  const JobQueueCounters jobs = jobs_.counters(), errands = errands_.counters();
  return jobs.running + jobs.waiting + errands.running + errands.waiting == 0;
}

bool JobDesk::Cancel(std::chrono::milliseconds limit) {
  errands_.Stop();
  jobs_.DropWaiting();
  std::vector<std::shared_ptr<Job>> taken;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, one] : taken_) taken.push_back(one.job.lock());
  }
  for (const auto& job : taken) {
    if (job != nullptr) job->Cancel(absl::UnavailableError("the server is stopping"));
  }
  taken.clear();
  return jobs_.WaitUntilIdle(limit);
}

void JobDesk::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_now_.notify_all();
  errands_.Stop();
  preparations_.Stop();
  jobs_.Stop();
  if (keeper_.joinable()) keeper_.join();
}

}  // namespace trine::server
