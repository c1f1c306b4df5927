// The HIP backend's entry point: discrete GPUs of AMD and NVIDIA, or the emulator.
#include "backends/hip/backend.h"
#include "trine/sdk/hardware.h"

// Lists the device files of the kernel's drivers, and of Windows if Linux runs inside it
// (/dev/dxg).
#if defined(TRINE_GPU_AMD)
TRINE_PLUGIN_HARDWARE("/dev/kfd:/dev/dxg");
#elif defined(TRINE_GPU_NVIDIA)
TRINE_PLUGIN_HARDWARE("/dev/nvidiactl:/dev/nvidia0:/dev/nvhost-gpu:/dev/nvgpu:/dev/dxg");
#else
TRINE_PLUGIN_HARDWARE("$TRINE_HIP_ALLOW_HOST");
#endif

extern "C" const trine_plugin* trine_plugin_query(uint32_t host_abi_version) {
  return host_abi_version >> 16 == TRINE_ABI_MAJOR ? &trine::hip::Table() : nullptr;
}
