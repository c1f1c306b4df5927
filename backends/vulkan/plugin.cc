// Entry point of the Vulkan backend: every GPU that has a driver, all ops and types, synchronous.
#include "backends/vulkan/backend.h"
#include "trine/sdk/hardware.h"

// Lists device files of the kernel's drivers, of vendors' drivers, of emulators, and of Windows if
// Linux runs inside it; then the variables that name drivers.
TRINE_PLUGIN_HARDWARE(
    "/dev/dri:/dev/nvidiactl:/dev/nvidia0:/dev/nvhost-gpu:/dev/nvgpu:/dev/dxg:/dev/mali0"
    ":/dev/kgsl-3d0:/dev/pvr_sync:/dev/pvrsrvkm:/dev/galcore:/dev/goldfish_pipe"
    ":$VK_DRIVER_FILES:$VK_ADD_DRIVER_FILES:$VK_ICD_FILENAMES:$VN_DEBUG:$TRINE_VULKAN_ALLOW_CPU");

extern "C" const trine_plugin* trine_plugin_query(uint32_t host_abi_version) {
  return host_abi_version >> 16 == TRINE_ABI_MAJOR ? &trine::vulkan::Table() : nullptr;
}
