#include "runtime/pass_groups.h"

#include <algorithm>

namespace trine {
namespace {

// The share of the stage's time from which on the host's is too long, and below which it no longer
// is. At 1 both numbers of groups would come to the same.
constexpr double kTooLong = 0.75;
constexpr double kShort = 0.5;
// Of a new time in the mean.
constexpr double kWeight = 1.0 / 16;
// What may be spent on waiting for others, likewise; and how late they may be, by the mean.
constexpr double kPatience = 0.25;
constexpr double kLate = 3;
// A caller that thinks is not a host that computes.
constexpr double kLongest = 4;

void Mean(double* mean, double value) {
  *mean = *mean == 0 ? value : *mean + kWeight * (value - *mean);
}

}  // namespace

void PassGroups::StageTook(Duration time) {
  Mean(&stage_ns_, std::max(1.0, static_cast<double>(time.count())));
  Decide();
}

void PassGroups::HostTook(Duration time) {
  if (stage_ns_ == 0) return;
  Mean(&host_ns_, std::clamp(static_cast<double>(time.count()), 1.0, kLongest * stage_ns_));
  Decide();
}

PassGroups::Duration PassGroups::patience() const {
  if (!patient_ || host_ns_ > kPatience * stage_ns_) return {};
  return Duration(static_cast<int64_t>(std::min(kLate * host_ns_, kPatience * stage_ns_)));
}

void PassGroups::Decide() {
  if (host_ns_ > kTooLong * stage_ns_) spare_ = true;
  if (host_ns_ < kShort * stage_ns_) spare_ = false;
}

}  // namespace trine
