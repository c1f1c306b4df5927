#include "tools/server/service/job_queue.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine::server {

JobQueue::JobQueue(const JobQueueOptions& options) : options_(options) {}

JobQueue::~JobQueue() { Stop(); }

absl::Status JobQueue::Add(const std::string& client, int64_t places, Job job, uint64_t* number) {
  std::lock_guard lock(mutex_);
  if (closed_) return absl::UnavailableError("the server is stopping");
  const auto known = by_name_.find(client);
  const size_t mine = known == by_name_.end() ? 0 : known->second->jobs.size();
  if (waiting_ >= options_.waiting || mine >= options_.waiting_per_client) {
    return absl::ResourceExhaustedError(
        absl::StrCat(waiting_ >= options_.waiting ? waiting_ : mine, " requests ",
                     waiting_ >= options_.waiting ? "" : "of yours ", "wait already"));
  }
  auto it = known == by_name_.end() ? clients_.end() : known->second;
  if (it == clients_.end()) {
    it = clients_.insert(clients_.end(), Client{client, {}});
    by_name_[client] = it;
  }
  *number = ++last_number_;
  it->jobs.push_back(
      {*number, std::clamp<int64_t>(places, 1, options_.places), std::move(job), Clock::now()});
  ++waiting_;
  if (idle_ == 0 && static_cast<int64_t>(threads_.size()) < options_.places) {
    try {
      threads_.emplace_back([this] { Work(); });
    } catch (const std::system_error&) {
      // Those there are do it, unless there are none.
      if (threads_.empty()) {
        it->jobs.pop_back();
        --waiting_;
        if (it->jobs.empty()) {
          by_name_.erase(client);
          clients_.erase(it);
        }
        return absl::UnavailableError("the system gives no thread to work with");
      }
    }
  }
  changed_.notify_all();
  return absl::OkStatus();
}

bool JobQueue::Remove(uint64_t number) {
  Job dropped;  // what it holds goes when the lock is no longer held
  std::lock_guard lock(mutex_);
  for (auto client = clients_.begin(); client != clients_.end(); ++client) {
    const auto found = std::find_if(client->jobs.begin(), client->jobs.end(),
                                    [&](const Waiting& w) { return w.number == number; });
    if (found == client->jobs.end()) continue;
    dropped = std::move(found->job);
    client->jobs.erase(found);
    --waiting_;
    if (client->jobs.empty()) {
      by_name_.erase(client->name);
      clients_.erase(client);
    }
    changed_.notify_all();
    return true;
  }
  return false;
}

// The one in front is not overtaken by those that need less: it would wait for ever.
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

void JobQueue::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [&] { return CanStart() || (stopping_ && waiting_ == 0); });
    --idle_;
    if (!CanStart()) return;
    Waiting next = TakeNext();
    taken_ += next.places;
    ++running_;
    changed_.notify_all();  // there may be room for one more
    lock.unlock();
    next.job(Clock::now() - next.since);
    next.job = nullptr;
    lock.lock();
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

void JobQueue::DropWaiting() {
  std::list<Client> dropped;
  std::lock_guard lock(mutex_);
  dropped.swap(clients_);
  by_name_.clear();
  waiting_ = 0;
  changed_.notify_all();
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
