#include "backends/vulkan/loader.h"

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
  // Never closed: drivers leave threads and exit handlers behind.
  void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    return absl::NotFoundError("Vulkan is not installed: no libvulkan.so.1 (Debian: libvulkan1)");
  }
  const auto get =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  if (get == nullptr) return Missing("GetInstanceProcAddr");
  return LoadGlobal(get);
}

}  // namespace trine::vulkan
