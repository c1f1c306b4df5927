// Sessions that clients have open between their requests (docs/server.md, "Sessions"). Each belongs
// to whoever opened it, and is used by one request at a time. Thread-safe.
#ifndef TRINE_TOOLS_SERVER_SERVICE_SESSION_SHELF_H_
#define TRINE_TOOLS_SERVER_SERVICE_SESSION_SHELF_H_

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
#include "runtime/session.h"
#include "tools/server/openai/session_answers.h"
#include "tools/server/service/served_model.h"

namespace trine::server {

struct SessionLimits {
  size_t sessions = 32;            // at once, of all clients; 0: there are none
  size_t per_owner = 0;            // of them, of one key; 0: all
  std::chrono::seconds idle{600};  // after which one that nobody uses is closed
};

struct SessionCounters {
  uint64_t open = 0, busy = 0;  // now; busy ones among them
  uint64_t opened = 0, forked = 0, expired = 0, checkpoints = 0;
};

class SessionShelf {
 private:
  struct Kept;

 public:
  explicit SessionShelf(const SessionLimits& limits) : limits_(limits) {}
  SessionShelf(const SessionShelf&) = delete;
  SessionShelf& operator=(const SessionShelf&) = delete;

  // One session, for one request. The shelf outlives it.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept = default;
    Hold& operator=(Hold&& other) noexcept;
    ~Hold() { Release(); }

    // Null of one that is to be made, and of one that has been released.
    Session* session() const;
    const std::string& id() const;
    uint64_t seed() const;
    SessionCard Card() const;

    void Put(std::shared_ptr<const ServedModel> model, uint64_t seed,
             std::unique_ptr<Session> session);
    // Others may have it. Before the answer's last byte: whoever has read that may ask again.
    void Release();

   private:
    friend class SessionShelf;
    Hold(SessionShelf* shelf, std::shared_ptr<Kept> kept) : shelf_(shelf), kept_(std::move(kept)) {}

    SessionShelf* shelf_ = nullptr;
    std::shared_ptr<Kept> kept_;
  };

  // Places for new ones, which nobody sees before they are put there and released. All or none: 429
  // where there is no room.
  absl::StatusOr<std::vector<Hold>> Open(const std::string& owner, size_t n);
  // 404 where the owner has none by that name, 409 while another request has it.
  absl::StatusOr<Hold> Take(const std::string& owner, const std::string& id);
  // It is no more: for others at once, and for a request that has it as soon as that lets go, which
  // what OnClose was given sees to. 404 likewise.
  absl::Status Close(const std::string& owner, const std::string& id);
  // By whoever holds it, until it is released: `told` is called, once, when it is closed.
  void OnClose(const std::string& id, std::function<void()> told);
  // Without holding it.
  absl::StatusOr<SessionCard> Look(const std::string& owner, const std::string& id) const;
  std::vector<SessionCard> List(const std::string& owner) const;  // in the order they came in

  void CloseIdle();  // those whose time is up
  void CloseAll();   // that nobody holds

  const SessionLimits& limits() const { return limits_; }
  SessionCounters counters() const;
  void CountForks(size_t n);
  void CountCheckpoint();

 private:
  using Clock = std::chrono::steady_clock;
  using Entries = std::map<std::string, std::shared_ptr<Kept>>;  // by id

  void Return(const std::shared_ptr<Kept>& kept);
  SessionCard CardOf(const Kept& kept, Clock::time_point now) const;
  absl::StatusOr<std::shared_ptr<Kept>> Find(const std::string& owner, const std::string& id) const;
  size_t CloseThose(const std::function<bool(const Kept&)>& chosen);
  absl::Status CheckRoom(const std::string& owner, size_t n) const;

  const SessionLimits limits_;
  mutable std::mutex mutex_;
  Entries entries_;  // guarded by mutex_, as is what follows
  uint64_t last_number_ = 0;
  SessionCounters counters_;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_SESSION_SHELF_H_
