// What the parts of the measurement of one device share: the device, the options, and the costs
// that are known so far. Used by measure_*.cc alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "dispatch/cost/measure_device.h"
#include "dispatch/cost/rounds.h"
#include "dispatch/cost/timed_plan.h"

namespace trine {

constexpr int64_t kMeasuredWidth = 2048;  // of matrices and activations
constexpr int64_t kMeasuredNarrow = 512;  // on a device for which kMeasuredWidth takes too long
constexpr double kTooLongNs = 20e6;       // a product takes too long from here on

// Keeps a cost above 0 if its time is too short for the clock.
inline double AtLeast(double ns, double least) {
  return std::isfinite(ns) ? std::max(ns, least) : least;
}

class Measuring {
 public:
  Measuring(std::shared_ptr<Device> device, const MeasureOptions& options, size_t steps)
      : device_(std::move(device)), options_(options), steps_(static_cast<double>(steps)) {}

  const std::shared_ptr<Device>& device() const { return device_; }
  const MeasureOptions& options() const { return options_; }
  DeviceCosts& costs() { return result_.measured.costs; }
  CostTrust& trust() { return result_.measured.trust; }
  DeviceMeasurement Take() { return std::move(result_); }

  // Returns CANCELLED if the user wants no more.
  absl::Status GoOn() const {
    if (!options_.progress || options_.progress(done_ / steps_)) return absl::OkStatus();
    return absl::CancelledError("calibration was cancelled");
  }
  absl::Status StepDone() {
    done_ += 1;
    return GoOn();
  }

  // Measures one round of a plan, in nanoseconds a run.
  absl::StatusOr<double> Round(TimedPlan* plan, const std::vector<int64_t>& params) const {
    if (absl::Status s = GoOn(); !s.ok()) return s;
    return plan->Round(params, budget_ns());
  }
  double budget_ns() const { return options_.seconds * 1e9 / options_.rounds; }
  absl::StatusOr<Rounds> InRounds(const std::vector<MeasureOnce>& things) const {
    return MeasureInRounds(options_.rounds, things);
  }

  // The type of weights from which the costs that do not depend on the type come.
  std::optional<uint32_t> base_type;

  void Note(std::string sentence) { result_.notes.push_back(std::move(sentence)); }
  // Notes that a cost is not measured, if that is because the device lacks the op. Returns any
  // other error.
  absl::Status Skip(const std::string& cost, const absl::Status& why) {
    if (!absl::IsUnimplemented(why)) return why;
    Note(absl::StrCat(cost, ": not measured, but guessed (", why.message(), ")"));
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Device> device_;
  const MeasureOptions& options_;
  DeviceMeasurement result_;
  const double steps_;
  double done_ = 0;
};

// The error of a device that refuses all types of weights. `why`: the reason for the first.
inline absl::Status NoProducts(const std::string& why) {
  return absl::UnimplementedError(absl::StrCat("it multiplies with no type of weights: ", why));
}

// Measures the cost of a run by a copy of a few values. Returns UNIMPLEMENTED if the device does
// not copy. The cost contains the copy until MeasureSmallOps.
absl::Status MeasureRunWithCopy(Measuring* m);
// Measures the small ops that the device has. `run_has_copy`: MeasureRunWithCopy was successful.
absl::Status MeasureSmallOps(Measuring* m, bool run_has_copy);
absl::Status MeasureAttention(Measuring* m);
absl::Status MeasureMoves(Measuring* m);

// Measures the cost of a run by products, for a device that does not copy. Takes the first type
// that the device multiplies with. Returns UNIMPLEMENTED if there is none.
absl::Status MeasureRunWithProducts(Measuring* m, const std::vector<uint32_t>& types);
// Measures products with a type of weights, and for the first type what a product costs apart from
// its weights. Returns UNIMPLEMENTED if the device refuses the type.
absl::Status MeasureProducts(Measuring* m, uint32_t type);
// Measures types again that are much faster than all others. Leaves them out if they stay so.
absl::Status DoubtFastTypes(Measuring* m);
// Compares products with weights in the layout of the file and in the device's layout. The type of
// this and of the following functions must have been measured.
absl::Status MeasureUnpacked(Measuring* m, uint32_t type);
// Measures products with weights in the host's memory, for devices that have their own memory.
absl::Status MeasureStreamed(Measuring* m, uint32_t type);
// Compares the time of layers, as many models have them, with the sum of their ops' times.
absl::Status MeasureLayers(Measuring* m, uint32_t type);

}  // namespace trine
