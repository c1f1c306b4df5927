// What differs from platform to platform of a device's description.
#ifndef TRINE_BACKENDS_HIP_ARCH_H_
#define TRINE_BACKENDS_HIP_ARCH_H_

#include <cstdint>
#include <string>

#include "kernels/hip/product.h"

namespace trine::hip {

#if defined(TRINE_GPU_AMD)
inline constexpr const char* kRuntimeName = "HIP";
inline constexpr bool kIsEmulated = false;
#elif defined(TRINE_GPU_NVIDIA)
inline constexpr const char* kRuntimeName = "CUDA";
inline constexpr bool kIsEmulated = false;
#else
inline constexpr const char* kRuntimeName = "emulator";
inline constexpr bool kIsEmulated = true;
#endif

// The plugin's, as in libtrine-backend-NAME.so.
inline constexpr const char* kPluginName = kIsEmulated ? "hip-host" : "hip";

// "gfx1100", "sm_90", "host".
std::string ArchOf(int device);

// Whether the kernels were compiled for it.
bool HasCodeFor(int device);

// What multiplies tiles on an architecture, by its name.
MatrixUnit MatrixUnitOf(const std::string& arch);

// `wanted` where a device has it, else its own. The emulator has those that go with its waves.
MatrixUnit UsableUnit(MatrixUnit wanted, const std::string& arch, uint32_t warp);

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_ARCH_H_
