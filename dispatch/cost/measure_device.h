// Measures the costs of work on a device, with plans of a few ops.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/cost/device_costs.h"
#include "dispatch/cost/machine_load.h"
#include "plugins/handles.h"

namespace trine {

struct MeasureOptions {
  uint32_t numerics = TRINE_NUMERICS_EXACT;  // FAST: also measures ops that are not exact
  std::vector<uint32_t> types;  // the types of weights; empty: all types that products exist for
  // The least bytes of weights that a run reads, if memory allows it: more than caches hold.
  uint64_t stream_bytes = uint64_t{128} << 20;
  double seconds = 0.05;  // for each number of tokens and type of weights, over all rounds
  int rounds = 5;         // that everything is measured in; the median counts
  int again = 3;          // times that a doubtful cost is measured again, at most
  // Receives the part that is done, often. If it returns false, MeasureDevice returns CANCELLED.
  std::function<bool(double)> progress;
  // Reads the processors' times, to see what else the machine does. null: it is not looked at.
  std::function<CpuTimes()> cpu_times;
};

struct DeviceMeasurement {
  MeasuredCosts measured;
  // Sentences about what could not be measured, what was doubted and what was not kept.
  std::vector<std::string> notes;
};

// Measures a device. Leaves out ops and types that it refuses, with a note. Returns UNIMPLEMENTED
// if it has no products.
absl::StatusOr<DeviceMeasurement> MeasureDevice(std::shared_ptr<Device> device,
                                                const MeasureOptions& options);

}  // namespace trine
