#include "backends/vulkan/device/device.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/vulkan/device/loader.h"

namespace trine::vulkan {
namespace {

struct Enabled {
  VkPhysicalDeviceFeatures2 features{};
  VkPhysicalDeviceVulkan11Features features11{};
  VkPhysicalDeviceVulkan12Features features12{};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_sizes{};
  VkPhysicalDeviceShaderIntegerDotProductFeatures int_dot{};
  std::vector<const char*> extensions;
};

// Fills `e`, which must not be moved afterwards: it points into itself.
void Enable(const DeviceCaps& caps, Enabled* e) {
  const bool v13 = caps.api_version >= VK_API_VERSION_1_3;
  e->features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  e->features.features.shaderInt16 = caps.int16;
  e->features.features.shaderInt64 = caps.int64;
  e->features11.storageBuffer16BitAccess = caps.storage16;
  e->features12.timelineSemaphore = VK_TRUE;
  e->features12.storageBuffer8BitAccess = caps.storage8;
  e->features12.shaderInt8 = caps.int8;
  e->features12.shaderFloat16 = caps.float16;
  void** tail = &e->features.pNext;
  Chain(tail, e->features11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
  Chain(tail, e->features12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  if (caps.can_require_subgroup_size) {
    e->subgroup_sizes.subgroupSizeControl = e->subgroup_sizes.computeFullSubgroups = VK_TRUE;
    Chain(tail, e->subgroup_sizes,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
    if (!v13) e->extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  }
  if (caps.int_dot) {
    e->int_dot.shaderIntegerDotProduct = VK_TRUE;
    Chain(tail, e->int_dot, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES);
    if (!v13) e->extensions.push_back(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  }
  if (caps.import_alignment != 0) {
    e->extensions.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  }
  if (caps.memory_budget) e->extensions.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> Device::Create(const Instance& instance,
                                                       const FoundDevice& found) {
  if (!found.reason.empty()) return absl::FailedPreconditionError(found.reason);
  std::unique_ptr<Device> device(new Device(instance, found));
  if (absl::Status status = device->CreateHandle(); !status.ok()) return status;
  return device;
}

absl::Status Device::CreateHandle() {
  Enabled enabled;
  Enable(caps_, &enabled);
  const float priority = 1;
  auto queue = Info<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = caps_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto info = Info<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.pNext = &enabled.features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(enabled.extensions.size());
  info.ppEnabledExtensionNames = enabled.extensions.data();
  const InstanceTable& vk = instance_.functions();
  VkDevice handle = VK_NULL_HANDLE;
  const VkResult result = vk.CreateDevice(physical_, &info, nullptr, &handle);
  if (result != VK_SUCCESS) {
    return VkStatus(result, absl::StrCat(caps_.name, " could not be opened"));
  }
  auto functions = LoadDevice(vk, handle);
  if (!functions.ok()) {
    const auto destroy =
        reinterpret_cast<PFN_vkDestroyDevice>(vk.GetDeviceProcAddr(handle, "vkDestroyDevice"));
    if (destroy != nullptr) destroy(handle, nullptr);
    return functions.status();
  }
  handle_ = handle;
  functions_ = *functions;
  functions_.GetDeviceQueue(handle_, caps_.queue_family, 0, &queue_);
  return absl::OkStatus();
}

Device::~Device() {
  if (handle_ == VK_NULL_HANDLE || abandoned()) return;
  WaitIdle();
  functions_.DestroyDevice(handle_, nullptr);
}

void Device::WaitIdle() {
  if (abandoned()) return;
  // A lost device is idle, and for other failures there is no remedy.
  functions_.DeviceWaitIdle(handle_);
}

absl::Status Device::Check(VkResult result, const std::string& what) {
  if (result == VK_SUCCESS) return absl::OkStatus();
  absl::Status status = VkStatus(result, absl::StrCat(caps_.name, ": ", what));
  return result == VK_ERROR_DEVICE_LOST ? DeclareLost(std::string(status.message())) : status;
}

absl::Status Device::Health() const {
  if (!lost_.load(std::memory_order_acquire)) return absl::OkStatus();
  std::lock_guard<std::mutex> lock(mutex_);
  return absl::UnavailableError(loss_);
}

absl::Status Device::Abandon(const std::string& sentence) {
  abandoned_.store(true, std::memory_order_release);
  instance_.LeaveBehind();
  // A driver for the CPU works in threads of this process, which must not exit before they end.
  if (caps_.kind == DeviceKind::kCpu) functions_.DeviceWaitIdle(handle_);
  return DeclareLost(absl::StrCat(caps_.name, ": ", sentence));
}

absl::Status Device::DeclareLost(const std::string& sentence) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!lost_.load(std::memory_order_relaxed)) loss_ = sentence;  // only the first reason counts
    lost_.store(true, std::memory_order_release);
  }
  return Health();
}

}  // namespace trine::vulkan
