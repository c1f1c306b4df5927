// How fast this machine reads memory: the bound that decoding is measured against.
#ifndef TRINE_TOOLS_CLI_READ_BANDWIDTH_H_
#define TRINE_TOOLS_CLI_READ_BANDWIDTH_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace trine {

struct ReadBandwidth {
  double bytes_per_second = 0;  // of the best pass
  uint64_t bytes = 0;           // read in one pass
};

// `threads` threads sum a buffer, each its own part, several times over. The buffer has `bytes`
// bytes, or half of the memory there is where that is less. RESOURCE_EXHAUSTED without a buffer or
// threads.
absl::StatusOr<ReadBandwidth> MeasureReadBandwidth(uint32_t threads, uint64_t bytes);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_READ_BANDWIDTH_H_
