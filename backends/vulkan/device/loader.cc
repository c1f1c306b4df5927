#include "backends/vulkan/device/loader.h"

#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace trine::vulkan {
namespace {

absl::Status Missing(const char* name) {
  return absl::FailedPreconditionError(
      absl::StrCat("the Vulkan installed here is too old or broken: it has no vk", name));
}

}  // namespace

#define TRINE_VULKAN_REQUIRE(name)                               \
  table.name = reinterpret_cast<PFN_vk##name>(find("vk" #name)); \
  if (table.name == nullptr) return Missing(#name);
#define TRINE_VULKAN_TAKE(name) table.name = reinterpret_cast<PFN_vk##name>(find("vk" #name));

absl::StatusOr<GlobalTable> LoadGlobal(PFN_vkGetInstanceProcAddr get) {
  GlobalTable table;
  table.GetInstanceProcAddr = get;
  const auto find = [&](const char* name) { return get(nullptr, name); };
  TRINE_VULKAN_GLOBAL_FUNCTIONS(TRINE_VULKAN_REQUIRE)
  return table;
}

absl::StatusOr<InstanceTable> LoadInstance(const GlobalTable& global, VkInstance instance) {
  InstanceTable table;
  const auto find = [&](const char* name) { return global.GetInstanceProcAddr(instance, name); };
  TRINE_VULKAN_INSTANCE_FUNCTIONS(TRINE_VULKAN_REQUIRE, TRINE_VULKAN_TAKE)
  return table;
}

absl::StatusOr<DeviceTable> LoadDevice(const InstanceTable& functions, VkDevice device) {
  DeviceTable table;
  const auto find = [&](const char* name) { return functions.GetDeviceProcAddr(device, name); };
  TRINE_VULKAN_DEVICE_FUNCTIONS(TRINE_VULKAN_REQUIRE, TRINE_VULKAN_TAKE)
  return table;
}

#undef TRINE_VULKAN_REQUIRE
#undef TRINE_VULKAN_TAKE

absl::StatusOr<GlobalTable> LoadVulkan() {
  // Never closed, because drivers leave threads and exit handlers that still run its code.
  void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    return absl::NotFoundError("Vulkan is not installed: no libvulkan.so.1 (Debian: libvulkan1)");
  }
  const auto get =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (get == nullptr) return Missing("GetInstanceProcAddr");
  return LoadGlobal(get);
}

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
