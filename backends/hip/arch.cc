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
  if (begins("gfx11")) return MatrixUnit::kWmma;
  if (begins("gfx120")) return MatrixUnit::kWmmaGfx12;
  if (arch == "gfx908" || arch == "gfx90a") return MatrixUnit::kMfma;
  if (begins("gfx94")) return MatrixUnit::kMfmaGfx942;
  return MatrixUnit::kDot4;
}

MatrixUnit UsableUnit(MatrixUnit wanted, const std::string& arch, uint32_t warp) {
  const MatrixUnit own = MatrixUnitOf(arch);
  if (wanted == MatrixUnit::kDot4 || wanted == own) return wanted;
  if (!kIsEmulated) return own;
  const bool wide = wanted == MatrixUnit::kMfma || wanted == MatrixUnit::kMfmaGfx942;
  const bool narrow = wanted == MatrixUnit::kWmma || wanted == MatrixUnit::kWmmaGfx12;
  return (wide && warp != 64) || (narrow && warp != 32) ? own : wanted;
}

}  // namespace trine::hip
