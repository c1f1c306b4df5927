// Which devices there are, what they are, and which of them are used.
#ifndef TRINE_BACKENDS_HIP_FOUND_DEVICES_H_
#define TRINE_BACKENDS_HIP_FOUND_DEVICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/hip/product.h"

namespace trine::hip {

struct FoundDevice {
  int index = 0;  // of the runtime's
  std::string name, arch, pci_id, driver;
  uint32_t warp = 32;
  bool integrated = false;
  DeviceShape shape;
  std::string reason;  // why it is not used; "": it is
};

struct FoundDevices {
  std::vector<FoundDevice> devices;
  std::string none;  // why there are none
};

// What the user allows besides discrete GPUs.
struct DeviceChoice {
  bool integrated = false;  // TRINE_HIP_ALLOW_INTEGRATED=1
  bool host = false;        // TRINE_HIP_ALLOW_HOST=1: the emulator's
};
DeviceChoice DeviceChoiceFromEnvironment();

FoundDevices FindDevices(const DeviceChoice& choice);

// Of a device, now; 0 and 0 where it can't say.
struct FreeMemory {
  uint64_t available = 0, total = 0;
};
FreeMemory MemoryOf(int index);

}  // namespace trine::hip

#endif  // TRINE_BACKENDS_HIP_FOUND_DEVICES_H_
