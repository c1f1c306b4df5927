// A device by the name somebody gave it, or a sentence that says why there is none of that name.
#ifndef TRINE_DISPATCH_FIND_DEVICE_H_
#define TRINE_DISPATCH_FIND_DEVICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "dispatch/inventory.h"

namespace trine {

// By tier ("cpu", "igpu", "dgpu1") or by the name known elsewhere ("CPU", "Vulkan0"). NOT_FOUND
// lists what there is, and what plugins without a device have to say; a device that is there but
// not used comes with its reason.
absl::StatusOr<const InventoryDevice*> FindDevice(const Inventory& inventory,
                                                  const std::string& name);

// "cpu, igpu0 (Vulkan0)": all that layers may be put on.
std::string UsableDevices(const Inventory& inventory);

// "; vulkan: why it has no device; ...", of plugins that were refused or show no device that may be
// used. "" where there is none.
std::string IdlePlugins(const Inventory& inventory);
// "; igpu0 is used only where it is named" and so on; "" where there is no such device.
std::string OnRequestOnly(const Inventory& inventory);

// "Vulkan0", or "Vulkan0, only where it is named" of a device that serves no other way.
std::string OwnName(const InventoryDevice& device);

}  // namespace trine

#endif  // TRINE_DISPATCH_FIND_DEVICE_H_
