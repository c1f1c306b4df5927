#include "runtime/batch/pass_groups.h"

#include <algorithm>

namespace trine {
namespace {

// One more group is used when the host takes more than kTooLong of the stage's time, until it takes
// less than kShort. At a ratio of 1 both numbers of groups would be equally fast.
constexpr double kTooLong = 0.75;
constexpr double kShort = 0.5;
// The weight of a new time in the mean.
constexpr double kWeight = 1.0 / 16;
// The longest wait for owners, as a share of the stage's time, and as a multiple of the host's mean
// time.
constexpr double kPatience = 0.25;
constexpr double kLate = 3;
// Longer times of the host are cut to this multiple of the stage's time: such an owner waits for a
// user, and does not compute.
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
