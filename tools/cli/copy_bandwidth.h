// How fast a device copies inside its own memory by the op that its backend has: what decoding on
// it is measured against.
#ifndef TRINE_TOOLS_CLI_COPY_BANDWIDTH_H_
#define TRINE_TOOLS_CLI_COPY_BANDWIDTH_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "plugins/handles.h"
#include "tools/cli/read_bandwidth.h"

namespace trine {

// Copies `bytes` bytes to and fro by the device's own op, several times over; what is read and what
// is written both count.
absl::StatusOr<ReadBandwidth> MeasureCopyBandwidth(std::shared_ptr<Device> device, uint64_t bytes);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_COPY_BANDWIDTH_H_
