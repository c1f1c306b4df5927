#include "tools/server/service/job_queue.h"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine::server {

JobQueue::JobQueue(const JobQueueOptions& options) : options_(options) {}

JobQueue::~JobQueue() { Stop(); }

absl::Status JobQueue::Add(const std::string& client, int64_t parts, Work work, uint64_t* number) {
  std::lock_guard lock(mutex_);
  if (closed_) return absl::UnavailableError("the server is stopping");
  const auto known = by_name_.find(client);
  const size_t mine = known == by_name_.end() ? 0 : known->second->jobs.size();
  if (waiting_ >= options_.waiting || mine >= options_.waiting_per_client) {
    return absl::ResourceExhaustedError(
        absl::StrCat(waiting_ >= options_.waiting ? waiting_ : mine, " requests ",
                     waiting_ >= options_.waiting ? "" : "of yours ", "wait already"));
  }
  const auto entry = std::make_shared<Entry>();
  entry->number = last_number_ + 1;
  entry->client = client;
  entry->work = std::move(work);
  if (!entry->work.arrived) entry->work.arrived = Clock::now();
  const auto place = entries_.emplace(entry->number, entry).first;
  try {
    Push(entry, std::max<int64_t>(parts, 1));
  } catch (...) {
    entries_.erase(place);
    throw;
  }
  StartThreads();
  if (threads_.empty()) {
    Extract([&](const Entry& e) { return e.number == entry->number; });
    entries_.erase(entry->number);
    return absl::UnavailableError("the system gives no thread to work with");
  }
  *number = ++last_number_;
  changed_.notify_all();
  return absl::OkStatus();
}

bool JobQueue::AddParts(uint64_t number, int64_t parts) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(number);
  if (stopping_ || found == entries_.end() || parts < 1) return false;
  try {
    Push(found->second, parts);
  } catch (const std::bad_alloc&) {
    return false;
  }
  StartThreads();
  changed_.notify_all();
  return true;
}

// An idle thread may already be meant for a part that was added before, so each waiting part needs
// one. If the system refuses threads, those there are do the work.
void JobQueue::StartThreads() {
  try {
    while (static_cast<int64_t>(idle_ + starting_) < waiting_parts_ &&
           static_cast<int64_t>(threads_.size()) < options_.places) {
      const std::string name = absl::StrCat(options_.name, "-", threads_.size());
      threads_.emplace_back([this] { RunThread(); });
      ++starting_;
      // Otherwise it has the name of the thread that happened to start it.
      pthread_setname_np(threads_.back().native_handle(), name.c_str());
    }
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
}

// Changes nothing if memory runs out.
void JobQueue::Push(const EntryPtr& entry, int64_t parts) {
  if (entry->waiting == 0) {
    if (const auto found = by_name_.find(entry->client); found != by_name_.end()) {
      found->second->jobs.push_back(entry);
    } else {
      std::list<Client> added(1);
      added.front().name = entry->client;
      added.front().jobs.push_back(entry);
      by_name_.emplace(entry->client, added.begin());
      clients_.splice(clients_.end(), added);
    }
    entry->since = Clock::now();
    ++waiting_;
  }
  entry->waiting += parts;
  waiting_parts_ += parts;
}

void JobQueue::Refuse(const Work& work, int64_t parts, const absl::Status& why) noexcept {
  try {
    if (work.refuse) work.refuse(parts, why);
  } catch (...) {
    // There is no memory to send the error with.
  }
}

bool JobQueue::IsFull() const {
  std::lock_guard lock(mutex_);
  return taken_ + waiting_parts_ > options_.places;
}

// Needs the lock.
std::list<JobQueue::Removed> JobQueue::Extract(const std::function<bool(const Entry&)>& chosen) {
  std::list<Removed> taken;
  for (auto client = clients_.begin(); client != clients_.end();) {
    auto& jobs = client->jobs;
    for (auto next = jobs.begin(); next != jobs.end();) {
      const auto job = next++;
      if (!chosen(**job)) continue;
      taken.push_back({*job, (*job)->waiting});
      waiting_parts_ -= (*job)->waiting;
      (*job)->waiting = 0;
      ++(*job)->users;
      --waiting_;
      jobs.erase(job);
    }
    if (!jobs.empty()) {
      ++client;
      continue;
    }
    by_name_.erase(client->name);
    client = clients_.erase(client);
  }
  return taken;
}

int64_t JobQueue::Remove(uint64_t number) {
  std::list<Removed> removed;
  {
    std::lock_guard lock(mutex_);
    removed = Extract([&](const Entry& entry) { return entry.number == number; });
  }
  int64_t parts = 0;
  for (const Removed& one : removed) {
    parts += one.parts;
    Release(one.entry);
  }
  return parts;
}

// Parts that wait stay at the head of their client's list, so that they begin before the client's
// next job. Parts that AddParts adds to a job without waiting parts come behind the client's jobs.
JobQueue::EntryPtr JobQueue::TakeNext() {
  const auto client = clients_.begin();
  const EntryPtr next = client->jobs.front();
  --next->waiting;
  --waiting_parts_;
  if (next->waiting == 0) {
    client->jobs.pop_front();
    --waiting_;
  }
  if (client->jobs.empty()) {
    by_name_.erase(client->name);
    clients_.erase(client);
  } else {
    clients_.splice(clients_.end(), clients_, client);
  }
  ++next->running;
  ++next->users;
  ++taken_;
  return next;
}

void JobQueue::Release(const EntryPtr& entry) {
  std::unique_lock lock(mutex_);
  if (entry->users == 1 && entry->waiting == 0) {
    // Nobody else calls into the work, and no part can be added: only a running part may do that.
    lock.unlock();
    entry->work = {};
    lock.lock();
    entries_.erase(entry->number);
  }
  --entry->users;
  changed_.notify_all();
}

void JobQueue::RunThread() {
  std::unique_lock<std::mutex> lock(mutex_);
  --starting_;
  while (true) {
    ++idle_;
    changed_.wait(lock, [&] { return CanStart() || (stopping_ && waiting_parts_ == 0); });
    --idle_;
    if (!CanStart()) return;
    const EntryPtr entry = TakeNext();
    const Clock::time_point now = Clock::now();
    const Turn turn = {entry->number, now - entry->since};
    entry->since = now;
    changed_.notify_all();  // another part may find a place as well
    lock.unlock();
    try {
      entry->work.run(turn);
    } catch (...) {
      // The client is told when the job's reply is destroyed.
    }
    lock.lock();
    --taken_;
    --entry->running;
    lock.unlock();
    Release(entry);
    lock.lock();
  }
}

void JobQueue::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
}

bool JobQueue::WaitUntilIdle(std::chrono::milliseconds limit) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return entries_.empty(); });
}

void JobQueue::Drop(const std::function<bool(const Entry&)>& chosen, const absl::Status& why) {
  std::list<Removed> removed;
  {
    std::lock_guard lock(mutex_);
    removed = Extract(chosen);
  }
  for (const Removed& one : removed) {
    Refuse(one.entry->work, one.parts, why);
    Release(one.entry);
  }
}

void JobQueue::DropWaiting() {
  Drop([](const Entry&) { return true; }, absl::UnavailableError("the server is stopping"));
}

void JobQueue::DropOlder(std::chrono::milliseconds limit) {
  const Clock::time_point then = Clock::now() - limit;
  Drop([&](const Entry& entry) { return *entry.work.arrived < then; },
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
  JobQueueCounters counters = {.places = options_.places, .taken = taken_};
  for (const auto& [number, entry] : entries_) {
    if (entry->running > 0) ++counters.running;
    if (entry->running == 0 && entry->waiting > 0) ++counters.waiting;
  }
  return counters;
}

}  // namespace trine::server
