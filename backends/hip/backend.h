// Backends and their devices, as the table's entries need them.
#ifndef TRINE_BACKENDS_HIP_BACKEND_H_
#define TRINE_BACKENDS_HIP_BACKEND_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "backends/hip/handles.h"

namespace trine::hip {

// INVALID_ARGUMENT for options that are none. Without a device it is made, and has none.
absl::StatusOr<std::unique_ptr<trine_backend>> MakeBackend(const trine_host* host,
                                                           const std::string& options);

trine_device_info DescribeDevice(trine_backend* backend, uint32_t index);

absl::StatusOr<std::unique_ptr<trine_device>> MakeDevice(trine_backend* backend, uint32_t index);

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_BACKEND_H_
