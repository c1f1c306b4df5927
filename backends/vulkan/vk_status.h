// VkResult as a status with a sentence.
#ifndef TRINE_BACKENDS_VULKAN_VK_STATUS_H_
#define TRINE_BACKENDS_VULKAN_VK_STATUS_H_

#include <vulkan/vulkan.h>

#include <string>

#include "absl/status/status.h"

namespace trine::vulkan {

// OK for VK_SUCCESS. `what` was tried: "memory of 12 bytes could not be had". The codes are those
// of docs/plugin-abi.md: RESOURCE_EXHAUSTED for want of memory, UNAVAILABLE for a lost device.
absl::Status VkStatus(VkResult result, const std::string& what);

// "VK_ERROR_DEVICE_LOST", or the number of one that is not known here.
std::string VkResultName(VkResult result);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_VK_STATUS_H_
