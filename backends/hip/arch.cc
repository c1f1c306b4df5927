#include "backends/hip/arch.h"

#include "kernels/hip/activations.h"
#include "kernels/hip/gpu/runtime.h"

namespace trine::hip {
namespace {

// Any kernel will do: all were compiled for the same targets.
const void* SomeKernel() {
  Tensor x;
  x.dims[0] = 32;
  return QuantizeLaunch(x, {}).kernel;
}

}  // namespace

#if defined(TRINE_GPU_AMD)
std::string ArchOf(int device) {
  hipDeviceProp_t properties;
  if (hipGetDeviceProperties(&properties, device) != hipSuccess) return "";
  const std::string name = properties.gcnArchName;  // "gfx90a:sramecc+:xnack-"
  return name.substr(0, name.find(':'));
}
#elif defined(TRINE_GPU_NVIDIA)
std::string ArchOf(int device) {
  int major = 0, minor = 0;
  (void)gpuGetAttribute(&major, gpuAttribute::kMajor, device);
  (void)gpuGetAttribute(&minor, gpuAttribute::kMinor, device);
  return "sm_" + std::to_string(major) + std::to_string(minor);
}
#else
std::string ArchOf(int) { return "host"; }
#endif

bool HasCodeFor(int device) {
  return gpuSetDevice(device) == gpuSuccess && gpuHasCode(SomeKernel());
}

MatrixUnit MatrixUnitOf(const std::string& arch) {
  const auto begins = [&](const char* prefix) { return arch.rfind(prefix, 0) == 0; };
  if (begins("sm_")) return MatrixUnit::kMma;
  if (begins("gfx11") || begins("gfx12")) return MatrixUnit::kWmma;
  if (arch == "gfx908" || arch == "gfx90a" || begins("gfx94")) return MatrixUnit::kMfma;
  return MatrixUnit::kDot4;
}

}  // namespace trine::hip
