// Something that may never come back, as it calls into devices: on a thread of its own, which is
// left behind if it does not.
#ifndef TRINE_RUNTIME_WATCHED_H_
#define TRINE_RUNTIME_WATCHED_H_

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

// Wakes whoever waits for something.
class Bell {
 public:
  void Ring() {
    const std::lock_guard lock(mutex_);
    rung_ = true;
    changed_.notify_all();
  }
  // Until it has rung since the last time, or for so long.
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

// Result: absl::Status, or a StatusOr. For one thread that waits.
template <class Result>
class Watched {
 public:
  // `work` keeps alive whatever it uses, other than what is left to it (DeviceSet::Leave), and may
  // ring the bell, too. It is gone, on its own thread, before it counts as done.
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
      // Not here instead: who would watch, or answer?
      state_->result = absl::ResourceExhaustedError(
          absl::StrCat("no thread can be started: ", e.code().message()));
    }
  }
  // Leaves it behind, if it is not done.
  ~Watched() { Leave(); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  bool done() const {
    const std::lock_guard lock(state_->mutex);
    return state_->result.has_value();
  }
  // Until the bell rings, or for so long. Whether it is done.
  bool Listen(std::chrono::milliseconds time) {
    if (!done()) state_->bell->WaitFor(time);
    return done();
  }
  // Until it is done, or for so long. Whether it is.
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
  // Once, when it is done.
  Result Take() {
    const std::lock_guard lock(state_->mutex);
    return *std::move(state_->result);
  }
  // From now on nobody wants what comes of it: the thread destroys that itself. False: it has been
  // done meanwhile, and can be taken.
  bool Leave() {
    const std::lock_guard lock(state_->mutex);
    state_->left = !state_->result.has_value();
    return state_->left;
  }
  // Expires when the thread has let go of everything: the work, and of what came of it if that was
  // left behind.
  std::weak_ptr<void> life() const { return life_; }

 private:
  struct State {
    std::shared_ptr<Bell> bell;
    std::function<Result()> work;
    std::mutex mutex;
    std::optional<Result> result;  // guarded by mutex, like what follows
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

#endif  // TRINE_RUNTIME_WATCHED_H_
