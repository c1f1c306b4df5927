// Takes questions from a thread that works to the one that waits for it, which is where whoever
// wants to know of progress expects to be told.
#ifndef TRINE_RUNTIME_PROGRESS_RELAY_H_
#define TRINE_RUNTIME_PROGRESS_RELAY_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/model/load_progress.h"
#include "runtime/watched.h"

namespace trine {

class ProgressRelay {
 public:
  // Rung when something has been asked.
  const std::shared_ptr<Bell>& bell() const { return bell_; }

  // On the thread that works: false where it is to stop, or nobody waits any more.
  bool Ask(double fraction);
  // Likewise, without asking.
  bool Wanted() const;

  // On the one that waits: answers what has been asked, or, as the work may hang, tells of the last
  // fraction again. False: it is to stop.
  bool Answer(const LoadProgress& progress);
  // Nobody waits any more.
  void Leave();

 private:
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  double fraction_ = 0;
  bool asked_ = false;
  bool stopped_ = false;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_PROGRESS_RELAY_H_
