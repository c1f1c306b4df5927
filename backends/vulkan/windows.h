// A tensor that is larger than one binding may be, cut into windows of whole rows.
#ifndef TRINE_BACKENDS_VULKAN_WINDOWS_H_
#define TRINE_BACKENDS_VULKAN_WINDOWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/vulkan/device_caps.h"

namespace trine::vulkan {

struct Window {
  uint64_t first_row, rows;
  uint64_t offset, bytes;  // what is bound: the offset is as the device wants it aligned
  uint32_t skip_bytes;     // from there to the first row; goes to the shader as a push constant
};

// `rows` rows of `row_bytes` that begin `offset` bytes into their buffer. One window where they fit
// into one binding. INVALID_ARGUMENT where one row alone does not fit.
absl::StatusOr<std::vector<Window>> MakeWindows(const DeviceCaps& caps, uint64_t offset,
                                                uint64_t rows, uint64_t row_bytes);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_WINDOWS_H_
