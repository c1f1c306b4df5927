// How long calls into a device have been under way. Thread-safe.
#ifndef TRINE_PLUGINS_CALL_CLOCK_H_
#define TRINE_PLUGINS_CALL_CLOCK_H_

#include <chrono>
#include <mutex>
#include <optional>
#include <set>

namespace trine {

class CallClock {
 public:
  using Clock = std::chrono::steady_clock;

  // One call, while it is there.
  class Call {
   public:
    explicit Call(CallClock* clock) : clock_(clock) {
      const std::lock_guard lock(clock_->mutex_);
      at_ = clock_->calls_.insert(Clock::now());
    }
    ~Call() {
      const std::lock_guard lock(clock_->mutex_);
      clock_->calls_.erase(at_);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    CallClock* const clock_;
    std::multiset<Clock::time_point>::iterator at_;
  };

  // When the oldest of those that have not come back began.
  std::optional<Clock::time_point> Oldest() const {
    const std::lock_guard lock(mutex_);
    if (calls_.empty()) return std::nullopt;
    return *calls_.begin();
  }

 private:
  mutable std::mutex mutex_;
  std::multiset<Clock::time_point> calls_;
};

}  // namespace trine

#endif  // TRINE_PLUGINS_CALL_CLOCK_H_
