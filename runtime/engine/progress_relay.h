// Passes progress from a working thread to the thread that waits for it, because callers expect
// their progress callback to be called on the waiting thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "runtime/base/watched.h"
#include "runtime/model/weights/load_progress.h"

namespace trine {

class ProgressRelay {
 public:
  // Returns the bell that rings when Ask is called.
  const std::shared_ptr<Bell>& bell() const { return bell_; }

  // Reports a fraction and waits for the answer. Returns false if the work has to stop or no thread
  // waits for it any more. Called on the working thread.
  bool Ask(double fraction);
  // Returns false if the work has to stop or no thread waits for it any more.
  bool Wanted() const;

  // Calls `progress` with the fraction that Ask reported and gives Ask the answer. If there is no
  // Ask, because the work may hang, calls `progress` with the last fraction. Returns false if the
  // work has to stop. Called on the waiting thread.
  bool Answer(const LoadProgress& progress);
  // Call it when no thread waits any more.
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
