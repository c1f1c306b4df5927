// Where calls that hang stand until they are let go.
#ifndef TRINE_PLUGINS_FAULT_HUNG_CALLS_H_
#define TRINE_PLUGINS_FAULT_HUNG_CALLS_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

namespace trine::fault {

class HungCalls {
 public:
  // Returns when everybody is let go, which it says, or after the limit.
  bool Hang(std::optional<std::chrono::milliseconds> limit) {
    std::unique_lock<std::mutex> lock(mutex_);
    ++inside_;
    if (limit) {
      changed_.wait_for(lock, *limit, [&] { return released_; });
    } else {
      changed_.wait(lock, [&] { return released_; });
    }
    --inside_;
    changed_.notify_all();
    return released_;
  }

  // Lets go of all that hang; from now on nothing does. Returns when they have left.
  void Release() {
    std::unique_lock<std::mutex> lock(mutex_);
    released_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return inside_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool released_ = false;
};

}  // namespace trine::fault

#endif  // TRINE_PLUGINS_FAULT_HUNG_CALLS_H_
