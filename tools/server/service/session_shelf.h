// Keeps the sessions that clients have open between requests (docs/server.md, "Sessions"). A
// session belongs to the owner that opened it, and one request at a time may use it. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine/session.h"
#include "tools/server/openai/answers/plain_answers.h"
#include "tools/server/service/served_model.h"

namespace trine::server {

struct SessionLimits {
  size_t sessions = 32;            // the most open sessions; 0: sessions are off
  size_t per_owner = 0;            // the most open sessions of one owner; 0: no such limit
  std::chrono::seconds idle{600};  // a session that is not used for this long is closed
};

struct SessionCounters {
  uint64_t open = 0, busy = 0;  // sessions that are open now, and how many of them are in use
  uint64_t opened = 0, forked = 0, expired = 0, checkpoints = 0;
};

class SessionShelf {
 private:
  using Clock = std::chrono::steady_clock;
  struct Kept {
    std::string id, owner;
    uint64_t number = 0;
    int64_t created = 0;
    // Only the holder uses these three. `model` keeps the session's engine alive.
    std::shared_ptr<const ServedModel> model;
    uint64_t seed = 0;
    std::unique_ptr<Session> session;
    // Guarded by the shelf's mutex, as is what follows.
    bool held = true;
    bool shown = false;
    bool closed = false;  // closed while held: Release ends it
    std::function<void()> on_close;
    Clock::time_point used;
    SessionCard card;  // as of the last Release
  };

 public:
  explicit SessionShelf(const SessionLimits& limits) : limits_(limits) {}
  SessionShelf(const SessionShelf&) = delete;
  SessionShelf& operator=(const SessionShelf&) = delete;

  // Exclusive use of one session, for one request. The shelf must outlive it.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept = default;
    Hold& operator=(Hold&& other) noexcept;
    ~Hold() { Release(); }

    // Returns null before Put and after Release.
    Session* session() const { return kept_ == nullptr ? nullptr : kept_->session.get(); }
    const std::string& id() const { return kept_->id; }
    uint64_t seed() const { return kept_->seed; }
    SessionCard Card() const;

    // Puts a new session into the room that Open has reserved.
    void Put(std::shared_ptr<const ServedModel> model, uint64_t seed,
             std::unique_ptr<Session> session);
    // Lets other requests take the session. Call it before the last byte of the answer is sent,
    // because the client may use the session again as soon as it has read that byte.
    void Release();

   private:
    friend class SessionShelf;
    Hold(SessionShelf* shelf, std::shared_ptr<Kept> kept) : shelf_(shelf), kept_(std::move(kept)) {}

    SessionShelf* shelf_ = nullptr;
    std::shared_ptr<Kept> kept_;
  };

  // Reserves room for `n` new sessions. If there is not room for all, reserves none and returns an
  // error (429). Requests find a session after it has been Put and released.
  absl::StatusOr<std::vector<Hold>> Open(const std::string& owner, size_t n);
  // Takes a session for one request. Returns an error if the owner has no session `id` (404), or
  // while another request holds it (409).
  absl::StatusOr<Hold> Take(const std::string& owner, const std::string& id);
  // Closes a session: requests don't find it any more. Tells a request that holds it through
  // OnClose; the session ends when the request releases it. Returns an error (404) if there is no
  // such session.
  absl::Status Close(const std::string& owner, const std::string& id);
  // Sets the function that Close calls, once, if it closes the session while it is held. Only the
  // holder may call it. Calls `told` at once if the session is closed already.
  void OnClose(const std::string& id, std::function<void()> told);
  // Describes a session without holding it.
  absl::StatusOr<SessionCard> Look(const std::string& owner, const std::string& id) const;
  std::vector<SessionCard> List(const std::string& owner) const;  // in the order of opening

  void CloseIdle();  // closes the sessions that have not been used for longer than the limit
  void CloseAll();   // closes all sessions that no request holds

  const SessionLimits& limits() const { return limits_; }
  SessionCounters counters() const;
  void CountForks(size_t n);
  void CountCheckpoint();

 private:
  using Entries = std::map<std::string, std::shared_ptr<Kept>>;  // by id

  void Return(const std::shared_ptr<Kept>& kept);
  SessionCard CardOf(const Kept& kept, Clock::time_point now) const;
  absl::StatusOr<std::shared_ptr<Kept>> Find(const std::string& owner, const std::string& id) const;
  size_t CloseThose(const std::function<bool(const Kept&)>& chosen);
  absl::Status CheckRoom(const std::string& owner, size_t n) const;

  const SessionLimits limits_;
  mutable std::mutex mutex_;
  Entries entries_;  // guarded by mutex_, as are the members after it
  uint64_t last_number_ = 0;
  SessionCounters counters_;
};

}  // namespace trine::server
