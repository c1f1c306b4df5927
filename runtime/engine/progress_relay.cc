#include "runtime/engine/progress_relay.h"

namespace trine {

bool ProgressRelay::Ask(double fraction) {
  std::unique_lock lock(mutex_);
  fraction_ = fraction;
  asked_ = true;
  bell_->Ring();
  changed_.wait(lock, [&] { return !asked_ || stopped_; });
  return !stopped_;
}

bool ProgressRelay::Wanted() const {
  const std::lock_guard lock(mutex_);
  return !stopped_;
}

bool ProgressRelay::Answer(const LoadProgress& progress) {
  std::unique_lock lock(mutex_);
  if (stopped_) return false;
  const bool asked = asked_;
  const double fraction = fraction_;
  lock.unlock();
  const bool go_on = !progress || progress(fraction);
  lock.lock();
  if (asked) asked_ = false;
  if (!go_on) stopped_ = true;
  changed_.notify_all();
  return go_on;
}

void ProgressRelay::Leave() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace trine
