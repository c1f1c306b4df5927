#include "backends/hip/found_devices.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/hip/gpu/runtime.h"
#include "kernels/hip/ops/ops.h"

namespace trine::hip {
namespace {

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::strcmp(value, "1") == 0;
}

int Attribute(gpuAttribute attribute, int device) {
  int value = 0;
  return gpuGetAttribute(&value, attribute, device) == gpuSuccess ? value : 0;
}

std::string PciIdOf(int device) {
  char id[32] = {};
  if (gpuDeviceGetPciBusId(id, sizeof(id), device) != gpuSuccess) return "";
  std::string text = id;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string DriverText() {
  int runtime = 0, driver = 0;
  (void)gpuRuntimeGetVersion(&runtime);
  (void)gpuDriverGetVersion(&driver);
  return absl::StrCat(kRuntimeName, " ", runtime, ", driver ", driver);
}

FoundDevice Describe(int index, const DeviceChoice& choice) {
  FoundDevice found;
  found.index = index;
  char name[128] = {};
  if (gpuGetName(name, sizeof(name), index) == gpuSuccess) found.name = name;
  found.arch = ArchOf(index);
  found.pci_id = PciIdOf(index);
  found.driver = DriverText();
  found.warp = static_cast<uint32_t>(std::max(1, Attribute(gpuAttribute::kWarpSize, index)));
  found.integrated = Attribute(gpuAttribute::kIntegrated, index) != 0;
  found.shape.multiprocessors =
      static_cast<uint32_t>(std::max(1, Attribute(gpuAttribute::kMultiprocessors, index)));
  found.shape.shared_bytes =
      static_cast<uint32_t>(std::max(16 << 10, Attribute(gpuAttribute::kSharedBytes, index)));
  found.shape.asked_shared_bytes =
      static_cast<uint32_t>(std::max(0, Attribute(gpuAttribute::kAskedSharedBytes, index)));
  found.shape.unit = MatrixUnitOf(found.arch);
  if (kIsEmulated && !choice.host) {
    found.reason = "emulated on the CPU: counts only with TRINE_HIP_ALLOW_HOST=1";
  } else if (found.integrated && !choice.integrated) {
    found.reason = "integrated: the vulkan backend serves it (TRINE_HIP_ALLOW_INTEGRATED=1)";
  } else if (!HasCodeFor(index)) {
    found.reason = absl::StrCat("this build has no code for ", found.arch);
  }
  return found;
}

// Any kernel will do, because all were compiled for the same targets.
const void* SomeKernel() {
  Tensor x;
  x.dims[0] = 32;
  return QuantizeLaunch(x, {}).kernel;
}

}  // namespace

DeviceChoice DeviceChoiceFromEnvironment() {
  return {IsSet("TRINE_HIP_ALLOW_INTEGRATED"), IsSet("TRINE_HIP_ALLOW_HOST")};
}

FoundDevices FindDevices(const DeviceChoice& choice) {
  FoundDevices found;
  // If the call fails, the count means nothing and may not have been set.
  int count = 0;
  const gpuError error = gpuGetDeviceCount(&count);
  if (error != gpuSuccess) {
    (void)gpuGetLastError();
    found.none = absl::StrCat("no device: ", gpuGetErrorString(error));
    return found;
  }
  for (int i = 0; i < count; ++i) found.devices.push_back(Describe(i, choice));
  if (found.devices.empty()) found.none = "no device";
  return found;
}

FreeMemory MemoryOf(int index) {
  size_t available = 0, total = 0;
  if (gpuSetDevice(index) != gpuSuccess || gpuMemGetInfo(&available, &total) != gpuSuccess) {
    (void)gpuGetLastError();
    return {};
  }
  return {available, total};
}

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
