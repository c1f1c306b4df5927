// Runs work that calls into devices on a separate thread, because such a call may never return. If
// the work does not return, the thread is abandoned.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace trine {

// Wakes a waiting thread.
class Bell {
 public:
  void Ring() {
    const std::lock_guard lock(mutex_);
    rung_ = true;
    changed_.notify_all();
  }
  // Waits until the bell rings or `time` has passed. Returns at once if the bell has rung since the
  // last wait.
  void WaitFor(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, time, [&] { return rung_; });
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;
};

// Work on a separate thread. Result is absl::Status or a StatusOr. For one waiting thread.
template <class Result>
class Watched {
 public:
  // Starts `work`. It must keep alive everything that it uses, except what DeviceSet::Leave leaves
  // to it. It may ring the bell, too. It is destroyed on its thread, before done() returns true.
  explicit Watched(std::function<Result()> work,
                   std::shared_ptr<Bell> bell = std::make_shared<Bell>())
      : state_(std::make_shared<State>()) {
    state_->bell = std::move(bell);
    state_->work = std::move(work);
    auto life = std::make_shared<char>();
    life_ = life;
    try {
      std::thread([state = state_, life = std::move(life)]() mutable {
        Run(*state);
        state.reset();
        life.reset();
      }).detach();
    } catch (const std::system_error& e) {
      // The work is not run on this thread instead: then nothing could watch it.
      state_->result = absl::ResourceExhaustedError(
          absl::StrCat("no thread can be started: ", e.code().message()));
    }
  }
  // Abandons the work if it is not done.
  ~Watched() { Leave(); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  bool done() const {
    const std::lock_guard lock(state_->mutex);
    return state_->result.has_value();
  }
  // Waits until the bell rings or `time` has passed. Returns whether the work is done.
  bool Listen(std::chrono::milliseconds time) {
    if (!done()) state_->bell->WaitFor(time);
    return done();
  }
  // Waits until the work is done or `time` has passed. Returns whether the work is done.
  bool WaitFor(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (!done()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      state_->bell->WaitFor(left);
    }
    return true;
  }
  // Returns the result. REQUIRES: the work is done, and Take has not been called.
  Result Take() {
    const std::lock_guard lock(state_->mutex);
    return *std::move(state_->result);
  }
  // Abandons the work: its thread destroys the result. Returns false, and changes nothing, if the
  // work is done; then the result can be taken.
  bool Leave() {
    const std::lock_guard lock(state_->mutex);
    state_->left = !state_->result.has_value();
    return state_->left;
  }
  // Expires when the thread has destroyed the work, and also the result if the work was abandoned.
  std::weak_ptr<void> life() const { return life_; }

 private:
  struct State {
    std::shared_ptr<Bell> bell;
    std::function<Result()> work;
    std::mutex mutex;
    std::optional<Result> result;  // guarded by mutex, as is the next member
    bool left = false;
  };

  static void Run(State& state) {
    std::optional<Result> result;
    {
      const std::function<Result()> work = std::move(state.work);
      state.work = nullptr;
      result.emplace(Do(work));
    }
    {
      const std::lock_guard lock(state.mutex);
      if (!state.left) state.result = std::exchange(result, std::nullopt);
    }
    result.reset();
    state.bell->Ring();
  }

  static Result Do(const std::function<Result()>& work) {
    try {
      return work();
    } catch (const std::exception& e) {
      return absl::InternalError(e.what());
    }
  }

  std::shared_ptr<State> state_;
  std::weak_ptr<void> life_;
};

}  // namespace trine
