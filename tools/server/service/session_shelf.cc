#include "tools/server/service/session_shelf.h"

#include <algorithm>
#include <ctime>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/server/openai/api_error.h"
#include "tools/server/openai/ids.h"

namespace trine::server {

SessionShelf::Hold& SessionShelf::Hold::operator=(Hold&& other) noexcept {
  if (this == &other) return *this;
  Release();
  shelf_ = other.shelf_;
  kept_ = std::move(other.kept_);
  return *this;
}

SessionCard SessionShelf::Hold::Card() const {
  SessionCard card;
  card.id = kept_->id;
  card.created = kept_->created;
  card.seed = kept_->seed;
  card.idle_seconds_left = shelf_->limits_.idle.count();
  if (kept_->session == nullptr) return card;
  card.model = kept_->model->card().id;
  card.tokens = kept_->session->sequence().size();
  for (const auto& point : kept_->session->ListCheckpoints()) {
    card.checkpoints.push_back({point.t, point.tokens});
  }
  return card;
}

void SessionShelf::Hold::Put(std::shared_ptr<const ServedModel> model, uint64_t seed,
                             std::unique_ptr<Session> session) {
  kept_->model = std::move(model);
  kept_->seed = seed;
  kept_->session = std::move(session);
}

void SessionShelf::Hold::Release() {
  if (kept_ == nullptr) return;
  if (kept_->session != nullptr) {
    try {
      SessionCard card = Card();
      std::lock_guard lock(shelf_->mutex_);
      kept_->card = std::move(card);
    } catch (const std::bad_alloc&) {
      // The old card stays.
    }
  }
  shelf_->Return(std::exchange(kept_, nullptr));
}

void SessionShelf::Return(const std::shared_ptr<Kept>& kept) {
  std::lock_guard lock(mutex_);
  kept->on_close = nullptr;
  if (kept->session == nullptr || kept->closed) {
    entries_.erase(kept->id);
    return;  // the caller destroys `kept`, without the lock
  }
  if (!kept->shown) ++counters_.opened;
  kept->shown = true;
  kept->held = false;
  kept->used = Clock::now();
}

absl::Status SessionShelf::CheckRoom(const std::string& owner, size_t n) const {
  if (n > limits_.sessions - std::min(entries_.size(), limits_.sessions)) {
    return HttpError(
        429,
        absl::StrCat("there are ", entries_.size(), " sessions, and at most ", limits_.sessions,
                     " may be open (--sessions): close some, or wait until some that "
                     "are idle have been"),
        "too_many_sessions");
  }
  if (limits_.per_owner == 0) return absl::OkStatus();
  const auto own =
      static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
        return entry.second->owner == owner;
      }));
  if (n <= limits_.per_owner - std::min(own, limits_.per_owner)) return absl::OkStatus();
  return HttpError(
      429,
      absl::StrCat("this key has ", own, " sessions, and may have ", limits_.per_owner,
                   " (--sessions-per-key): close some, or wait until some that are idle have been"),
      "too_many_sessions");
}

absl::StatusOr<std::vector<SessionShelf::Hold>> SessionShelf::Open(const std::string& owner,
                                                                   size_t n) {
  std::vector<Hold> holds;
  holds.reserve(n);
  std::lock_guard lock(mutex_);
  if (absl::Status s = CheckRoom(owner, n); !s.ok()) return s;
  for (size_t i = 0; i < n; ++i) {
    auto kept = std::make_shared<Kept>();
    kept->id = RandomId("sess-");
    kept->owner = owner;
    kept->number = ++last_number_;
    kept->created = static_cast<int64_t>(std::time(nullptr));
    entries_[kept->id] = kept;
    holds.push_back(Hold(this, std::move(kept)));
  }
  return holds;
}

absl::StatusOr<std::shared_ptr<SessionShelf::Kept>> SessionShelf::Find(
    const std::string& owner, const std::string& id) const {
  const auto found = entries_.find(id);
  // A session of another owner gets the same answer as one that does not exist.
  if (found == entries_.end() || found->second->owner != owner || !found->second->shown ||
      found->second->closed) {
    return HttpError(404, absl::StrCat("there is no session '", id, "', or no longer"),
                     "session_not_found");
  }
  return found->second;
}

absl::StatusOr<SessionShelf::Hold> SessionShelf::Take(const std::string& owner,
                                                      const std::string& id) {
  std::lock_guard lock(mutex_);
  const auto kept = Find(owner, id);
  if (!kept.ok()) return kept.status();
  if ((*kept)->held) {
    return HttpError(409, "another request of this session is under way: one at a time",
                     "session_busy");
  }
  (*kept)->held = true;
  return Hold(this, *kept);
}

absl::Status SessionShelf::Close(const std::string& owner, const std::string& id) {
  std::shared_ptr<Kept> kept;  // destroyed without the lock
  std::function<void()> told;
  {
    std::lock_guard lock(mutex_);
    auto found = Find(owner, id);
    if (!found.ok()) return found.status();
    kept = *std::move(found);
    if (kept->held) {
      kept->closed = true;
      told = std::exchange(kept->on_close, nullptr);
      kept = nullptr;  // the holder ends the session
    } else {
      entries_.erase(id);
    }
  }
  if (told) told();
  return absl::OkStatus();
}

void SessionShelf::OnClose(const std::string& id, std::function<void()> told) {
  {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    if (!found->second->closed) {
      found->second->on_close = std::move(told);
      return;
    }
  }
  told();
}

SessionCard SessionShelf::CardOf(const Kept& kept, Clock::time_point now) const {
  SessionCard card = kept.card;
  card.busy = kept.held;
  const auto left =
      std::chrono::duration_cast<std::chrono::seconds>(limits_.idle - (now - kept.used));
  card.idle_seconds_left = kept.held ? limits_.idle.count() : std::max<int64_t>(left.count(), 0);
  return card;
}

absl::StatusOr<SessionCard> SessionShelf::Look(const std::string& owner,
                                               const std::string& id) const {
  std::lock_guard lock(mutex_);
  const auto kept = Find(owner, id);
  if (!kept.ok()) return kept.status();
  return CardOf(**kept, Clock::now());
}

std::vector<SessionCard> SessionShelf::List(const std::string& owner) const {
  const auto now = Clock::now();
  std::map<uint64_t, SessionCard> by_number;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, kept] : entries_) {
      if (kept->owner == owner && kept->shown && !kept->closed)
        by_number[kept->number] = CardOf(*kept, now);
    }
  }
  std::vector<SessionCard> cards;
  for (auto& [number, card] : by_number) cards.push_back(std::move(card));
  return cards;
}

// Ends sessions without holding the lock, because they give blocks back.
size_t SessionShelf::CloseThose(const std::function<bool(const Kept&)>& chosen) {
  std::vector<std::shared_ptr<Kept>> closed;
  {
    std::lock_guard lock(mutex_);
    for (auto it = entries_.begin(); it != entries_.end();) {
      if (it->second->held || !chosen(*it->second)) {
        ++it;
        continue;
      }
      closed.push_back(std::move(it->second));
      it = entries_.erase(it);
    }
  }
  return closed.size();
}

void SessionShelf::CloseIdle() {
  const auto now = Clock::now();
  const size_t n = CloseThose([&](const Kept& kept) { return now - kept.used >= limits_.idle; });
  std::lock_guard lock(mutex_);
  counters_.expired += n;
}

void SessionShelf::CloseAll() {
  CloseThose([](const Kept&) { return true; });
}

SessionCounters SessionShelf::counters() const {
  std::lock_guard lock(mutex_);
  SessionCounters counters = counters_;
  for (const auto& [id, kept] : entries_) {
    ++counters.open;
    if (kept->held) ++counters.busy;
  }
  return counters;
}

void SessionShelf::CountForks(size_t n) {
  std::lock_guard lock(mutex_);
  counters_.forked += n;
}

void SessionShelf::CountCheckpoint() {
  std::lock_guard lock(mutex_);
  ++counters_.checkpoints;
}

}  // namespace trine::server
