// What a device hands on, looked at before anybody uses it.
#ifndef TRINE_RUNTIME_MODEL_CANONICAL_CHECK_H_
#define TRINE_RUNTIME_MODEL_CANONICAL_CHECK_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace trine {

// What a device that keeps the contract hands on is canonical (docs/numerics.md): anything else
// means that it has gone wrong, or that its memory was written by someone else. DATA_LOSS of the
// device.
absl::Status CheckCanonical(std::span<const float> values, const std::string& device);

// Numbers of experts: at least 0, below `limit`.
absl::Status CheckIds(std::span<const int32_t> ids, int64_t limit, const std::string& device);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_CANONICAL_CHECK_H_
