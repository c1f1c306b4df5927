// Sessions that a job is busy with, and that others may cancel meanwhile. Thread-safe.
#ifndef TRINE_TOOLS_SERVER_SERVICE_RUNNING_SESSIONS_H_
#define TRINE_TOOLS_SERVER_SERVICE_RUNNING_SESSIONS_H_

#include <mutex>
#include <utility>
#include <vector>

#include "runtime/session.h"

namespace trine::server {

class RunningSessions {
 public:
  void Begin(std::vector<Session*> sessions) {
    std::lock_guard lock(mutex_);
    sessions_ = std::move(sessions);
  }
  // A Cancel finds none of them any more, and one that came too late holds no longer: the next
  // request of a session must not end by it.
  void End() {
    std::lock_guard lock(mutex_);
    for (Session* session : std::exchange(sessions_, {})) session->ClearCancel();
  }
  void Cancel() {
    std::lock_guard lock(mutex_);
    for (Session* session : sessions_) session->Cancel();
  }

 private:
  std::mutex mutex_;
  std::vector<Session*> sessions_;  // guarded by mutex_
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_RUNNING_SESSIONS_H_
