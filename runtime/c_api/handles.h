// Handles of the C API. A handle is a number in the shape of a pointer, and no number is given
// twice. So a call with a handle that was closed finds nothing, where a real pointer would lead
// into freed memory. What a handle stands for lives until the last call that uses it ends: an
// engine lives as long as its sessions and heads, and a session may be closed while another thread
// generates.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine/branch_choice_head.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/session.h"
#include "runtime/head/head.h"
#include "trine/trine.h"

namespace trine::c_api {

// Callbacks of the host that run on this thread. Some calls would wait for ever inside of one.
enum class Callback { kNone, kLog, kPrompt, kThreads, kOther };
class InCallback {
 public:
  // `engine`: the engine that calls; null while it is being loaded.
  InCallback(Callback callback, const Engine* engine);
  ~InCallback();
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;

  static bool Any();
  // Returns why the present thread must not evaluate on this engine, or OK.
  static absl::Status MayEvaluate(const Engine& engine);
  // Returns why the present thread must not call the library, or OK.
  static absl::Status MayCall();
  // Returns why the present thread must not take a device in again, or OK.
  static absl::Status MayReadmit();

 private:
  const Callback callback_;
  const Engine* const engine_;
  InCallback* const outer_;
};

// Passes log messages on until it is closed. Thread-safe.
class LogGate {
 public:
  // Calls `call` unless the gate is closed.
  template <class F>
  void Pass(F call) {
    std::shared_lock lock(mutex_);
    if (!open_) return;
    const InCallback inside(Callback::kLog, nullptr);
    call();
  }
  // Closes the gate and waits for calls in progress, but not for one of the calling thread's own.
  void Close();

 private:
  std::shared_mutex mutex_;
  std::atomic<bool> open_ = true;
};

struct EngineObject {
  std::shared_ptr<LogGate> log;
  std::unique_ptr<Engine> engine;
};
struct SessionObject {
  std::shared_ptr<EngineObject> of;  // destroyed after the session
  std::unique_ptr<Session> session;
  std::atomic<bool> is_busy = false;
};
struct HeadObject {
  std::shared_ptr<EngineObject> of;
  BranchChoiceHead chooser;
  ValueHead value;
};

// Give an object a handle.
trine_engine* NewHandle(std::shared_ptr<EngineObject> object);
trine_session* NewHandle(std::shared_ptr<SessionObject> object);
trine_head* NewHandle(std::shared_ptr<HeadObject> object);

// Return what a handle stands for. Return INVALID_ARGUMENT for NULL and for a handle that is not
// open, FAILED_PRECONDITION for one that was opened before fork(): the threads of its engine are in
// the parent process alone.
absl::StatusOr<std::shared_ptr<EngineObject>> Find(const trine_engine* handle);
absl::StatusOr<std::shared_ptr<SessionObject>> Find(const trine_session* handle);
absl::StatusOr<std::shared_ptr<HeadObject>> Find(const trine_head* handle);

// Close a handle. Do nothing for NULL or a handle that is not open.
void Close(const trine_engine* handle);
void Close(const trine_session* handle);
void Close(const trine_head* handle);

// A session for the time of one call.
class EnteredSession {
 public:
  // Returns FAILED_PRECONDITION if another call is in the session, and what Find returns.
  static absl::StatusOr<EnteredSession> Enter(const trine_session* handle);
  ~EnteredSession() {
    if (object_ != nullptr) object_->is_busy = false;
  }
  EnteredSession(EnteredSession&& other) noexcept = default;
  EnteredSession& operator=(EnteredSession&&) = delete;

  Session& session() const { return *object_->session; }
  const std::shared_ptr<EngineObject>& of() const { return object_->of; }

 private:
  explicit EnteredSession(std::shared_ptr<SessionObject> object) : object_(std::move(object)) {}
  std::shared_ptr<SessionObject> object_;
};

}  // namespace trine::c_api
