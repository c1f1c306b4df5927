// Describes devices for tests, roughly as their drivers do. Sets only the members that matter. Only
// lavapipe's values were read from a device.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "backends/vulkan/device/device_caps.h"

namespace trine::vulkan::testing {

DeviceQuery IntelXe1();        // Tiger Lake to Raptor Lake, integrated, Mesa
DeviceQuery IntelXe2();        // Lunar Lake, integrated, Mesa
DeviceQuery AmdRdna2Apu();     // Rembrandt, Mesa
DeviceQuery AmdRdna3Apu();     // Phoenix, Mesa
DeviceQuery NvidiaDiscrete();  // the host sees a small window of its memory
DeviceQuery Lavapipe();        // Mesa's driver that runs on the CPU, in the version of Debian 12

inline std::string Message(const absl::Status& status) { return std::string(status.message()); }

}  // namespace trine::vulkan::testing
