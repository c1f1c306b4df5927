#include "tools/server/service/job_queue.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine::server {

JobQueue::JobQueue(const JobQueueOptions& options) : options_(options) {}

JobQueue::~JobQueue() { Stop(); }

absl::Status JobQueue::Add(const std::string& client, int64_t places, Work work, uint64_t* number) {
  std::lock_guard lock(mutex_);
  if (closed_) return absl::UnavailableError("the server is stopping");
  const auto known = by_name_.find(client);
  const size_t mine = known == by_name_.end() ? 0 : known->second->jobs.size();
  if (waiting_ >= options_.waiting || mine >= options_.waiting_per_client) {
    return absl::ResourceExhaustedError(
        absl::StrCat(waiting_ >= options_.waiting ? waiting_ : mine, " requests ",
                     waiting_ >= options_.waiting ? "" : "of yours ", "wait already"));
  }
  // An idle thread may already be meant for a job that was added before, so each waiting job needs
  // one.
  if (waiting_ + 1 > idle_ && !StartThread() && threads_.empty()) {
    return absl::UnavailableError("the system gives no thread to work with");
  }
  if (!work.arrived) work.arrived = Clock::now();
  *number = ++last_number_;
  Push(client,
       {*number, std::clamp<int64_t>(places, 1, options_.places), std::move(work), Clock::now()});
  changed_.notify_all();
  return absl::OkStatus();
}

bool JobQueue::StartThread() {
  if (static_cast<int64_t>(threads_.size()) >= options_.places) return false;
  try {
    const std::string name = absl::StrCat(options_.name, "-", threads_.size());
    threads_.emplace_back([this] { RunThread(); });
    // Otherwise it has the name of the thread that happened to start it.
    pthread_setname_np(threads_.back().native_handle(), name.c_str());
    return true;
  } catch (const std::system_error&) {
    return false;  // the existing threads do the work
  }
}

// Changes nothing if memory runs out.
void JobQueue::Push(const std::string& client, Waiting&& waiting) {
  if (const auto found = by_name_.find(client); found != by_name_.end()) {
    found->second->jobs.push_back(std::move(waiting));
  } else {
    std::list<Client> added(1);
    added.front().name = client;
    added.front().jobs.resize(1);
    by_name_.emplace(client, added.begin());
    added.front().jobs.front() = std::move(waiting);
    clients_.splice(clients_.end(), added);
  }
  ++waiting_;
}

void JobQueue::Refuse(const Work& work, const absl::Status& why) noexcept {
  try {
    if (work.refuse) work.refuse(why);
  } catch (...) {
    // There is no memory to send the error with.
  }
}

bool JobQueue::PushAgain(const std::string& client, Waiting&& waiting) {
  if (stopping_) return false;
  try {
    waiting.since = Clock::now();
    Push(client, std::move(waiting));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool JobQueue::IsFull() const {
  std::lock_guard lock(mutex_);
  int64_t wanted = taken_;
  for (const Client& client : clients_) {
    for (const Waiting& waiting : client.jobs) wanted += waiting.places;
  }
  return wanted > options_.places;
}

std::list<JobQueue::Waiting> JobQueue::Extract(const std::function<bool(const Waiting&)>& chosen) {
  std::list<Waiting> taken;
  std::lock_guard lock(mutex_);
  for (auto client = clients_.begin(); client != clients_.end();) {
    auto& jobs = client->jobs;
    for (auto next = jobs.begin(); next != jobs.end();) {
      const auto job = next++;
      if (chosen(*job)) taken.splice(taken.end(), jobs, job);
    }
    if (!jobs.empty()) {
      ++client;
      continue;
    }
    by_name_.erase(client->name);
    client = clients_.erase(client);
  }
  waiting_ -= taken.size();
  changed_.notify_all();
  return taken;
}

bool JobQueue::Remove(uint64_t number) {
  return !Extract([&](const Waiting& w) { return w.number == number; }).empty();
}

// The first job is not overtaken by jobs that need fewer places: it would wait for ever.
bool JobQueue::CanStart() const {
  return waiting_ > 0 && taken_ + clients_.front().jobs.front().places <= options_.places;
}

JobQueue::Waiting JobQueue::TakeNext() {
  const auto client = clients_.begin();
  Waiting next = std::move(client->jobs.front());
  client->jobs.pop_front();
  --waiting_;
  if (client->jobs.empty()) {
    by_name_.erase(client->name);
    clients_.erase(client);
  } else {
    clients_.splice(clients_.end(), clients_, client);
  }
  return next;
}

void JobQueue::RunThread() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [&] { return CanStart() || (stopping_ && waiting_ == 0); });
    --idle_;
    if (!CanStart()) return;
    const std::string client = clients_.front().name;
    Waiting next = TakeNext();
    taken_ += next.places;
    ++running_;
    changed_.notify_all();  // another job may fit in as well
    lock.unlock();
    bool again = false;
    try {
      again = next.work.run(Clock::now() - next.since);
    } catch (...) {
      // The client is told when the job's reply is destroyed.
    }
    if (!again) next.work = {};
    lock.lock();
    if (again && !PushAgain(client, std::move(next))) {
      lock.unlock();
      Refuse(next.work, absl::UnavailableError("the server is stopping, or out of memory"));
      next.work = {};
      lock.lock();
    }
    taken_ -= next.places;
    --running_;
    changed_.notify_all();
  }
}

void JobQueue::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
}

bool JobQueue::WaitUntilIdle(std::chrono::milliseconds limit) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return waiting_ == 0 && running_ == 0; });
}

void JobQueue::Drop(const std::function<bool(const Waiting&)>& chosen, const absl::Status& why) {
  for (const Waiting& w : Extract(chosen)) Refuse(w.work, why);
}

void JobQueue::DropWaiting() {
  Drop([](const Waiting&) { return true; }, absl::UnavailableError("the server is stopping"));
}

void JobQueue::DropOlder(std::chrono::milliseconds limit) {
  const Clock::time_point then = Clock::now() - limit;
  Drop([&](const Waiting& w) { return w.work.arrived.value_or(w.since) < then; },
       absl::DeadlineExceededError("the request has waited for longer than one may take"));
}

void JobQueue::Stop() {
  Close();
  DropWaiting();
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    changed_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
}

JobQueueCounters JobQueue::counters() const {
  std::lock_guard lock(mutex_);
  return {options_.places, taken_, running_, static_cast<int64_t>(waiting_)};
}

}  // namespace trine::server
