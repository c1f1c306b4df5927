// Which of the devices that drivers show are used: each chip once, and none that can't be.
#ifndef TRINE_BACKENDS_VULKAN_DEVICE_CHOICE_H_
#define TRINE_BACKENDS_VULKAN_DEVICE_CHOICE_H_

#include <string>
#include <vector>

#include "backends/vulkan/device_caps.h"

namespace trine::vulkan {

// One reason for each device, in order; "" for those that are used. Of devices with the same UUID,
// one chip under several drivers, the one with the better driver stays; those that run on the CPU
// stay where `allow_cpu`.
std::vector<std::string> ReasonsAgainst(const std::vector<DeviceCaps>& devices, bool allow_cpu);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_DEVICE_CHOICE_H_
