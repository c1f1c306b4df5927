// Reports the progress of loading as one fraction of all bytes to read, check, pack and write.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"

namespace trine {

// Receives the fraction done, 0 to 1. Returns false to stop the work with CANCELLED.
using LoadProgress = std::function<bool(double fraction)>;

// Adds up all work and the finished work, and reports their ratio. Not thread-safe.
class LoadMeter {
 public:
  explicit LoadMeter(LoadProgress progress) : progress_(std::move(progress)) {}

  // Adds work, in bytes. The reported fraction never goes back.
  void Expect(uint64_t bytes) { total_ += bytes; }
  // Removes work that turned out to be unnecessary.
  void Waive(uint64_t bytes) { total_ -= std::min(total_, bytes); }
  // Records that all work is done.
  absl::Status Finish() { return Done(total_); }
  // Records that `bytes` of the work are done. Returns CANCELLED if the caller wants to stop.
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
