#include "runtime/c_api/handles.h"

#include <pthread.h>

#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "absl/strings/str_cat.h"

namespace trine::c_api {
namespace {

thread_local InCallback* g_callback = nullptr;

// The number of times that this process was made by fork() since the library was used first.
int g_forks = 0;

// Guards all tables. Never destroyed, because handles may be closed while the program exits.
std::mutex& TablesMutex() {
  static std::mutex& mutex = *[] {
    auto* made = new std::mutex;
    // A child must not find the mutex locked by a thread that it does not have.
    pthread_atfork([] { TablesMutex().lock(); }, [] { TablesMutex().unlock(); },
                   [] {
                     ++g_forks;
                     TablesMutex().unlock();
                   });
    return made;
  }();
  return mutex;
}

template <class Handle, class Object>
class HandleTable {
 public:
  struct Entry {
    std::shared_ptr<Object> object;
    int forks = 0;
  };

  explicit HandleTable(uintptr_t kind) : next_(0x1000 + kind) {}

  Handle* Add(std::shared_ptr<Object> object) {
    std::lock_guard lock(TablesMutex());
    // No handle of one kind equals one of another kind.
    const uintptr_t number = next_;
    entries_.emplace(number, Entry{std::move(object), g_forks});
    next_ += 16;
    return reinterpret_cast<Handle*>(number);
  }

  absl::StatusOr<std::shared_ptr<Object>> Find(const Handle* handle, const char* what) {
    if (handle == nullptr) return absl::InvalidArgumentError(absl::StrCat(what, " is NULL"));
    if (absl::Status s = InCallback::MayCall(); !s.ok()) return s;
    std::lock_guard lock(TablesMutex());
    const auto found = entries_.find(reinterpret_cast<uintptr_t>(handle));
    if (found == entries_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the ", what, " is not open: it was closed, or never opened"));
    }
    if (found->second.forks != g_forks) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the ", what,
          " was opened before fork(): a child process must open an engine of its own"));
    }
    return found->second.object;
  }

  // Returns the object of a handle that is open, and closes it; else null. An object from before
  // fork() is not returned and never destroyed: its destructor would wait for threads that this
  // process does not have.
  std::shared_ptr<Object> Remove(const Handle* handle) {
    std::lock_guard lock(TablesMutex());
    const auto found = entries_.find(reinterpret_cast<uintptr_t>(handle));
    if (found == entries_.end()) return nullptr;
    std::shared_ptr<Object> object = std::move(found->second.object);
    const bool is_ours = found->second.forks == g_forks;
    entries_.erase(found);
    if (is_ours) return object;
    new std::shared_ptr<Object>(std::move(object));
    return nullptr;
  }

 private:
  std::unordered_map<uintptr_t, Entry> entries_;
  uintptr_t next_;
};

// Tables are never destroyed, for the reason of their mutex.
auto& Engines() {
  static auto& table = *new HandleTable<trine_engine, EngineObject>(1);
  return table;
}
auto& Sessions() {
  static auto& table = *new HandleTable<trine_session, SessionObject>(2);
  return table;
}
auto& Heads() {
  static auto& table = *new HandleTable<trine_head, HeadObject>(3);
  return table;
}

// Gives up a reference, which may be the last one. A thread inside of a callback may be one of the
// engine's own, which the engine's destructor waits for: then another thread does it.
template <class Object>
void Release(std::shared_ptr<Object>&& given) {
  std::shared_ptr<Object> object = std::move(given);
  if (object == nullptr || !InCallback::Any()) return;
  auto* last = new std::shared_ptr<Object>(std::move(object));
  try {
    std::thread([last] { delete last; }).detach();
  } catch (const std::system_error&) {
    // No thread can be had. The memory stays in use, which is better than to wait for ever.
  }
}

}  // namespace

InCallback::InCallback(Callback callback, const Engine* engine)
    : callback_(callback), engine_(engine), outer_(g_callback) {
  g_callback = this;
}
InCallback::~InCallback() { g_callback = outer_; }

bool InCallback::Any() { return g_callback != nullptr; }

absl::Status InCallback::MayEvaluate(const Engine& engine) {
  for (const InCallback* c = g_callback; c != nullptr; c = c->outer_) {
    if (c->callback_ == Callback::kPrompt && c->engine_ == &engine) {
      return absl::FailedPreconditionError(
          "on_prompt must not evaluate on its engine, which waits for the callback to return");
    }
  }
  return absl::OkStatus();
}

absl::Status InCallback::MayCall() {
  for (const InCallback* c = g_callback; c != nullptr; c = c->outer_) {
    if (c->callback_ == Callback::kLog) {
      return absl::FailedPreconditionError("on_log must not call the library");
    }
    if (c->callback_ == Callback::kThreads) {
      return absl::FailedPreconditionError("parallel_run must not call the library");
    }
  }
  return absl::OkStatus();
}

absl::Status InCallback::MayReadmit() {
  if (g_callback == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "a callback must not take devices in again, which waits for the callback to return");
}

void LogGate::Close() {
  open_ = false;
  if (!InCallback::MayCall().ok()) return;  // this thread is in on_log
  std::unique_lock wait(mutex_);
}

trine_engine* NewHandle(std::shared_ptr<EngineObject> object) {
  return Engines().Add(std::move(object));
}
trine_session* NewHandle(std::shared_ptr<SessionObject> object) {
  return Sessions().Add(std::move(object));
}
trine_head* NewHandle(std::shared_ptr<HeadObject> object) { return Heads().Add(std::move(object)); }

absl::StatusOr<std::shared_ptr<EngineObject>> Find(const trine_engine* handle) {
  return Engines().Find(handle, "engine");
}
absl::StatusOr<std::shared_ptr<SessionObject>> Find(const trine_session* handle) {
  return Sessions().Find(handle, "session");
}
absl::StatusOr<std::shared_ptr<HeadObject>> Find(const trine_head* handle) {
  return Heads().Find(handle, "head");
}

void Close(const trine_engine* handle) {
  std::shared_ptr<EngineObject> object = Engines().Remove(handle);
  if (object == nullptr) return;
  // An engine that is destroyed here may still log, for example faults that never happened.
  const std::shared_ptr<LogGate> log = object->log;
  Release(std::move(object));
  log->Close();
}
void Close(const trine_session* handle) {
  std::shared_ptr<SessionObject> object = Sessions().Remove(handle);
  if (object == nullptr) return;
  if (object->is_busy) object->session->Cancel();
  Release(std::move(object));
}
void Close(const trine_head* handle) { Release(Heads().Remove(handle)); }

absl::StatusOr<EnteredSession> EnteredSession::Enter(const trine_session* handle) {
  auto object = Find(handle);
  if (!object.ok()) return object.status();
  if ((*object)->is_busy.exchange(true)) {
    return absl::FailedPreconditionError(
        "another call is in the session: one of another thread, or the one whose callback this is");
  }
  return EnteredSession(*std::move(object));
}

}  // namespace trine::c_api
