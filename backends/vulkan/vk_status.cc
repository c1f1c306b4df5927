#include "backends/vulkan/vk_status.h"

#include "absl/strings/str_cat.h"

namespace trine::vulkan {

std::string VkResultName(VkResult result) {
  switch (result) {
#define TRINE_VULKAN_NAME(name) \
  case name:                    \
    return #name;
    TRINE_VULKAN_NAME(VK_SUCCESS)
    TRINE_VULKAN_NAME(VK_NOT_READY)
    TRINE_VULKAN_NAME(VK_TIMEOUT)
    TRINE_VULKAN_NAME(VK_INCOMPLETE)
    TRINE_VULKAN_NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
    TRINE_VULKAN_NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    TRINE_VULKAN_NAME(VK_ERROR_INITIALIZATION_FAILED)
    TRINE_VULKAN_NAME(VK_ERROR_DEVICE_LOST)
    TRINE_VULKAN_NAME(VK_ERROR_MEMORY_MAP_FAILED)
    TRINE_VULKAN_NAME(VK_ERROR_LAYER_NOT_PRESENT)
    TRINE_VULKAN_NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
    TRINE_VULKAN_NAME(VK_ERROR_FEATURE_NOT_PRESENT)
    TRINE_VULKAN_NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
    TRINE_VULKAN_NAME(VK_ERROR_TOO_MANY_OBJECTS)
    TRINE_VULKAN_NAME(VK_ERROR_FRAGMENTED_POOL)
    TRINE_VULKAN_NAME(VK_ERROR_UNKNOWN)
    TRINE_VULKAN_NAME(VK_ERROR_OUT_OF_POOL_MEMORY)
    TRINE_VULKAN_NAME(VK_ERROR_INVALID_EXTERNAL_HANDLE)
#undef TRINE_VULKAN_NAME
    default:
      return absl::StrCat("VkResult ", static_cast<int>(result));
  }
}

absl::Status VkStatus(VkResult result, const std::string& what) {
  if (result == VK_SUCCESS) return absl::OkStatus();
  const std::string sentence = absl::StrCat(what, ": the driver says ", VkResultName(result));
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_MEMORY_MAP_FAILED:
      return absl::ResourceExhaustedError(sentence);
    case VK_ERROR_DEVICE_LOST:
      return absl::UnavailableError(sentence);
    case VK_TIMEOUT:
      return absl::DeadlineExceededError(sentence);
    case VK_ERROR_LAYER_NOT_PRESENT:
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT:
    case VK_ERROR_INVALID_EXTERNAL_HANDLE:
      return absl::FailedPreconditionError(sentence);
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return absl::NotFoundError(sentence);
    default:
      return absl::InternalError(sentence);
  }
}

}  // namespace trine::vulkan
