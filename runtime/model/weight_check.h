// Looks at every weight of a file once before any kernel does: a value or scale that is no number
// makes the file useless, and floats outside the contract's range have to be brought into it.
#ifndef TRINE_RUNTIME_MODEL_WEIGHT_CHECK_H_
#define TRINE_RUNTIME_MODEL_WEIGHT_CHECK_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "plugins/host_services.h"
#include "runtime/gguf/gguf_file.h"

namespace trine {

// Fraction done, 0 to 1. Returning false stops the work with CANCELLED.
using LoadProgress = std::function<bool(double fraction)>;

// The tensors (indices into `tensors`) that hold values outside the contract's range and so can't
// be used in place. INVALID_ARGUMENT names the first tensor and row that is not finite. Reads all
// bytes, with the host's thread team; `progress` is called on the calling thread.
absl::StatusOr<std::vector<bool>> CheckWeights(const std::vector<const gguf::TensorInfo*>& tensors,
                                               const HostServices& host,
                                               const LoadProgress& progress);

}  // namespace trine

#endif  // TRINE_RUNTIME_MODEL_WEIGHT_CHECK_H_
