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

namespace trine {

// Result: absl::Status, or a StatusOr.
template <class Result>
class Watched {
 public:
  // `work` keeps alive whatever it uses, other than what is left to it (DeviceSet::Leave).
  explicit Watched(std::function<Result()> work) : state_(std::make_shared<State>()) {
    const auto run = [state = state_, work = std::move(work)]() mutable {
      Result result = Do(work);
      work = nullptr;
      const std::lock_guard lock(state->mutex);
      state->result.emplace(std::move(result));
      state->done.notify_all();
    };
    try {
      std::thread(run).detach();
    } catch (const std::system_error&) {  // no more threads: then here
      auto now = run;
      now();
    }
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  // Whether it is done.
  bool WaitFor(std::chrono::milliseconds time) {
    std::unique_lock lock(state_->mutex);
    return state_->done.wait_for(lock, time, [&] { return state_->result.has_value(); });
  }
  // Once, when it is done.
  Result Take() {
    const std::lock_guard lock(state_->mutex);
    return *std::move(state_->result);
  }
  // Expires when neither this nor the thread is there any more.
  std::weak_ptr<void> life() const { return state_; }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<Result> result;
  };

  static Result Do(const std::function<Result()>& work) {
    try {
      return work();
    } catch (const std::exception& e) {
      return absl::InternalError(e.what());
    }
  }

  std::shared_ptr<State> state_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_WATCHED_H_
