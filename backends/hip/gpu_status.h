// Errors of a GPU's runtime as statuses.
#ifndef TRINE_BACKENDS_HIP_GPU_STATUS_H_
#define TRINE_BACKENDS_HIP_GPU_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/hip/gpu/runtime.h"

namespace trine::hip {

// OK, RESOURCE_EXHAUSTED for want of memory, else UNAVAILABLE: an error of work that was submitted
// may show in any later call, so that none can be told from a lost device. `what` was being done.
absl::Status GpuStatus(gpuError error, absl::string_view what);

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_GPU_STATUS_H_
