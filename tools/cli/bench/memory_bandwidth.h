// Measures the bandwidth of memory, which limits the speed of decoding.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "plugins/handles.h"

namespace trine {

struct ReadBandwidth {
  double bytes_per_second = 0;  // in the fastest pass
  uint64_t bytes = 0;           // the bytes of one pass
};

// Lets `threads` threads sum a buffer several times, each its own part. The buffer has `bytes`
// bytes, or half of the memory if that is less. Returns RESOURCE_EXHAUSTED if there is no memory or
// no thread for that.
absl::StatusOr<ReadBandwidth> MeasureReadBandwidth(uint32_t threads, uint64_t bytes);

// Copies `bytes` bytes back and forth inside a device's own memory with its backend's copy op,
// several times. Counts both reads and writes.
absl::StatusOr<ReadBandwidth> MeasureCopyBandwidth(std::shared_ptr<Device> device, uint64_t bytes);

}  // namespace trine
