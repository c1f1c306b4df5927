// Finds and describes the devices, and says which of them are used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/hip/weights/product.h"

namespace trine::hip {

// The parts of a device's description that differ from platform to platform.
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

// The plugin's name, as in libtrine-backend-NAME.so.
inline constexpr const char* kPluginName = kIsEmulated ? "hip-host" : "hip";

// Returns a name like "gfx1100", "sm_90" or "host".
std::string ArchOf(int device);

// Returns whether the kernels were compiled for the device.
bool HasCodeFor(int device);

// Returns the unit that multiplies tiles on an architecture. `arch` is a name as ArchOf returns.
MatrixUnit MatrixUnitOf(const std::string& arch);

// Returns `wanted` if the device has it, else the device's own unit. The emulator has all units
// that suit its wave size.
MatrixUnit UsableUnit(MatrixUnit wanted, const std::string& arch, uint32_t warp);

// A device that the runtime lists, used or not.
struct FoundDevice {
  int index = 0;  // the runtime's index
  std::string name, arch, pci_id, driver;
  uint32_t warp = 32;
  bool integrated = false;
  DeviceShape shape;
  std::string reason;  // why it is not used; "": it is used
};

struct FoundDevices {
  std::vector<FoundDevice> devices;
  std::string none;  // why there are no devices; "": there are some
};

// The devices that the user allows in addition to discrete GPUs.
struct DeviceChoice {
  bool integrated = false;  // TRINE_HIP_ALLOW_INTEGRATED=1
  bool host = false;        // TRINE_HIP_ALLOW_HOST=1: emulated devices
};
DeviceChoice DeviceChoiceFromEnvironment();

// Lists the runtime's devices, and says why each is not used or why there are none.
FoundDevices FindDevices(const DeviceChoice& choice);

// Returns a device's memory at this moment, or 0 and 0 if the runtime can't tell.
struct FreeMemory {
  uint64_t available = 0, total = 0;
};
FreeMemory MemoryOf(int index);

}  // namespace trine::hip
