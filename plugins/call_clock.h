// How long calls into a device have been under way. Thread-safe.
#ifndef TRINE_PLUGINS_CALL_CLOCK_H_
#define TRINE_PLUGINS_CALL_CLOCK_H_

#include <chrono>
#include <mutex>
#include <optional>

namespace trine {

class CallClock {
 public:
  using Clock = std::chrono::steady_clock;

  // One call, while it is there. Takes no memory: also where things are given back.
  class Call {
   public:
    explicit Call(CallClock* clock) : clock_(clock) {
      const std::lock_guard lock(clock_->mutex_);
      began_ = Clock::now();
      before_ = clock_->newest_;
      (before_ != nullptr ? before_->after_ : clock_->oldest_) = this;
      clock_->newest_ = this;
    }
    ~Call() {
      const std::lock_guard lock(clock_->mutex_);
      (before_ != nullptr ? before_->after_ : clock_->oldest_) = after_;
      (after_ != nullptr ? after_->before_ : clock_->newest_) = before_;
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    friend class CallClock;
    CallClock* const clock_;
    Clock::time_point began_;
    Call *before_ = nullptr, *after_ = nullptr;  // guarded by the clock's mutex
  };

  // When the oldest of those that have not come back began.
  std::optional<Clock::time_point> Oldest() const {
    const std::lock_guard lock(mutex_);
    if (oldest_ == nullptr) return std::nullopt;
    return oldest_->began_;
  }

 private:
  mutable std::mutex mutex_;
  Call *oldest_ = nullptr, *newest_ = nullptr;  // guarded by mutex_
};

}  // namespace trine

#endif  // TRINE_PLUGINS_CALL_CLOCK_H_
