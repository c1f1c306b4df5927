// Measures what work costs on a device, by plans of a few ops.
#ifndef TRINE_DISPATCH_MEASURE_DEVICE_H_
#define TRINE_DISPATCH_MEASURE_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/device_costs.h"
#include "plugins/handles.h"

namespace trine {

struct MeasureOptions {
  std::vector<uint32_t> types;  // of weights; empty: all that can be multiplied with
  // Weights read in one run at least, where memory allows: more than caches hold.
  uint64_t stream_bytes = uint64_t{128} << 20;
  double seconds = 0.05;                 // for each of some ten plans for each type
  std::function<bool(double)> progress;  // false: CANCELLED
};

// UNIMPLEMENTED where the device can run nothing of it. A type that the device refuses is left out.
absl::StatusOr<DeviceCosts> MeasureDevice(std::shared_ptr<Device> device,
                                          const MeasureOptions& options);

}  // namespace trine

#endif  // TRINE_DISPATCH_MEASURE_DEVICE_H_
