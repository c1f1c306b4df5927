// How far loading is: one fraction over all that has to be read, checked, packed and written.
#ifndef TRINE_RUNTIME_MODEL_LOAD_PROGRESS_H_
#define TRINE_RUNTIME_MODEL_LOAD_PROGRESS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"

namespace trine {

// Fraction done, 0 to 1. Returning false stops the work with CANCELLED.
using LoadProgress = std::function<bool(double fraction)>;

class LoadMeter {
 public:
  explicit LoadMeter(LoadProgress progress) : progress_(std::move(progress)) {}

  // Work that is known of, in bytes; the fraction never goes back.
  void Expect(uint64_t bytes) { total_ += bytes; }
  // Of that, what turned out to be unnecessary.
  void Waive(uint64_t bytes) { total_ -= std::min(total_, bytes); }
  absl::Status Finish() { return Done(total_); }
  absl::Status Done(uint64_t bytes) {
    done_ = std::min(total_, done_ + bytes);
    if (!progress_) return absl::OkStatus();
    const auto total = static_cast<double>(std::max<uint64_t>(1, total_));
    told_ = std::max(told_, static_cast<double>(done_) / total);
    return progress_(told_) ? absl::OkStatus() : absl::CancelledError("loading was cancelled");
  }

 private:
  LoadProgress progress_;
  uint64_t total_ = 0;
  uint64_t done_ = 0;
  double told_ = 0;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_LOAD_PROGRESS_H_
