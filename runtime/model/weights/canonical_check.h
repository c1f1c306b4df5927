// Checks what a device computed before anything uses it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace trine {

// Returns DATA_LOSS, naming the device, unless all values are canonical (docs/numerics.md). A
// device that keeps the contract computes only canonical values. Any other value means that the
// device has gone wrong or that its memory was overwritten.
absl::Status CheckCanonical(std::span<const float> values, const std::string& device);

// Returns DATA_LOSS, naming the device, unless all indices of experts are at least 0 and below
// `limit`.
absl::Status CheckIds(std::span<const int32_t> ids, int64_t limit, const std::string& device);

}  // namespace trine
