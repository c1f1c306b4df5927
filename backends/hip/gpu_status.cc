#include "backends/hip/gpu_status.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace trine::hip {

absl::Status GpuStatus(gpuError error, absl::string_view what) {
  if (error == gpuSuccess) return absl::OkStatus();
  std::string message = absl::StrCat(what, ": ", gpuGetErrorString(error));
#if defined(TRINE_GPU_HOST)
  if (const std::string why = emulator::LastFailure(); !why.empty()) {
    absl::StrAppend(&message, " (", why, ")");
  }
#endif
  if (error == gpuErrorMemoryAllocation) {
    (void)gpuGetLastError();  // it is remembered otherwise, and told to the next call
    return absl::ResourceExhaustedError(message);
  }
  return absl::UnavailableError(message);
}

}  // namespace trine::hip
