#include "backends/vulkan/testing/hooks.h"

#include <cstring>

namespace trine::vulkan::testing {
namespace {

PFN_vkGetInstanceProcAddr real_instance = nullptr;
PFN_vkGetDeviceProcAddr real_device = nullptr;
const char* replaced = nullptr;
PFN_vkVoidFunction replacement_function = nullptr;

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL FindForDevice(VkDevice device, const char* name) {
  return std::strcmp(name, replaced) == 0 ? replacement_function : real_device(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL FindForInstance(VkInstance instance, const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    real_device = reinterpret_cast<PFN_vkGetDeviceProcAddr>(real_instance(instance, name));
    return reinterpret_cast<PFN_vkVoidFunction>(FindForDevice);
  }
  return real_instance(instance, name);
}

}  // namespace

PFN_vkGetInstanceProcAddr Replace(PFN_vkGetInstanceProcAddr real, const char* name,
                                  PFN_vkVoidFunction replacement) {
  real_instance = real;
  replaced = name;
  replacement_function = replacement;
  return FindForInstance;
}

}  // namespace trine::vulkan::testing
