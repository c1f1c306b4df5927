// Devices much as their drivers describe them, for tests: the members that matter, and no more
// exact than that. Only lavapipe's were read off a device here.
#ifndef TRINE_BACKENDS_VULKAN_TESTING_DEVICE_FIXTURES_H_
#define TRINE_BACKENDS_VULKAN_TESTING_DEVICE_FIXTURES_H_

#include "backends/vulkan/device_query.h"

namespace trine::vulkan::testing {

DeviceQuery IntelXe1();        // Tiger Lake to Raptor Lake, integrated, Mesa
DeviceQuery IntelXe2();        // Lunar Lake, integrated, Mesa
DeviceQuery AmdRdna2Apu();     // Rembrandt, Mesa
DeviceQuery AmdRdna3Apu();     // Phoenix, Mesa
DeviceQuery NvidiaDiscrete();  // with a small window of its memory for the host
DeviceQuery Lavapipe();        // Mesa's driver that runs on the CPU, as Debian 12 has it

}  // namespace trine::vulkan::testing

#endif  // TRINE_BACKENDS_VULKAN_TESTING_DEVICE_FIXTURES_H_
