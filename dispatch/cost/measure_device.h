// Measures the costs of work on a device, with plans of a few ops.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/cost/device_costs.h"
#include "plugins/handles.h"

namespace trine {

struct MeasureOptions {
  uint32_t numerics = TRINE_NUMERICS_EXACT;  // FAST: also measures ops that are not exact
  std::vector<uint32_t> types;  // the types of weights; empty: all types that products exist for
  // The least bytes of weights that a run reads, if memory allows it: more than caches hold.
  uint64_t stream_bytes = uint64_t{128} << 20;
  double seconds = 0.05;  // for each of about ten plans of each type
  // Receives the part that is done. If it returns false, MeasureDevice returns CANCELLED.
  std::function<bool(double)> progress;
};

// Measures a device. Leaves out types that it refuses. Returns UNIMPLEMENTED if it can run nothing.
absl::StatusOr<DeviceCosts> MeasureDevice(std::shared_ptr<Device> device,
                                          const MeasureOptions& options);

}  // namespace trine
