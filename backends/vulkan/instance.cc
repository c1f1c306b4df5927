#include "backends/vulkan/instance.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/vulkan/device_choice.h"
#include "backends/vulkan/vk_status.h"

namespace trine::vulkan {
namespace {

constexpr char kValidationLayer[] = "VK_LAYER_KHRONOS_validation";

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::strcmp(value, "1") == 0;
}

void PrintToStderr(const std::string& message) {
  std::fprintf(stderr, "vulkan validation: %s\n", message.c_str());
}

bool HasLayer(const GlobalTable& global, const char* name) {
  uint32_t count = 0;
  if (global.EnumerateInstanceLayerProperties(&count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkLayerProperties> layers(count);
  if (global.EnumerateInstanceLayerProperties(&count, layers.data()) < VK_SUCCESS) return false;
  layers.resize(count);
  return std::any_of(layers.begin(), layers.end(), [&](const VkLayerProperties& layer) {
    return std::strcmp(layer.layerName, name) == 0;
  });
}

absl::Status NoInstance(VkResult result) {
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    return absl::NotFoundError(
        "no Vulkan driver is installed, or none that works (Debian: mesa-vulkan-drivers)");
  }
  return VkStatus(result, "no Vulkan instance could be made");
}

}  // namespace

InstanceOptions InstanceOptionsFromEnvironment() {
  InstanceOptions options;
  options.allow_cpu = IsSet("TRINE_VULKAN_ALLOW_CPU");
  options.validate = IsSet("TRINE_VULKAN_VALIDATE");
  return options;
}

Instance::Instance(const GlobalTable& global, const InstanceOptions& options)
    : global_(global),
      validate_(options.validate),
      messages_(options.on_message ? options.on_message : PrintToStderr) {}

Instance::~Instance() {
  if (messenger_ != VK_NULL_HANDLE) {
    functions_.DestroyDebugUtilsMessengerEXT(handle_, messenger_, nullptr);
  }
  if (handle_ != VK_NULL_HANDLE && !left_behind_.load(std::memory_order_acquire)) {
    functions_.DestroyInstance(handle_, nullptr);
  }
}

absl::StatusOr<std::unique_ptr<Instance>> Instance::Create(const GlobalTable& global,
                                                           const InstanceOptions& options) {
  std::unique_ptr<Instance> instance(new Instance(global, options));
  if (absl::Status status = instance->ChooseVersion(); !status.ok()) return status;
  if (options.validate && !HasLayer(global, kValidationLayer)) {
    return absl::FailedPreconditionError(
        absl::StrCat("TRINE_VULKAN_VALIDATE=1 needs ", kValidationLayer,
                     ", which is not installed (Debian: vulkan-validationlayers)"));
  }
  if (absl::Status status = instance->CreateHandle(); !status.ok()) return status;
  if (options.validate) {
    if (absl::Status status = instance->Listen(); !status.ok()) return status;
  }
  if (absl::Status status = instance->FindDevices(options.allow_cpu); !status.ok()) return status;
  return instance;
}

absl::Status Instance::ChooseVersion() {
  uint32_t offered = 0;
  if (const VkResult result = global_.EnumerateInstanceVersion(&offered); result != VK_SUCCESS) {
    return VkStatus(result, "the version of Vulkan could not be asked for");
  }
  if (offered < VK_API_VERSION_1_2) {
    return absl::FailedPreconditionError("the Vulkan loader is older than 1.2");
  }
  api_version_ = std::min<uint32_t>(offered, VK_API_VERSION_1_3);
  return absl::OkStatus();
}

absl::Status Instance::CreateHandle() {
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = application.pEngineName = "trine";
  application.apiVersion = api_version_;
  VkDebugUtilsMessengerCreateInfoEXT messenger = messages_.CreateInfo();
  const VkValidationFeatureEnableEXT enable =
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT features{};
  features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  features.pNext = &messenger;  // for what happens while the instance is made and destroyed
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = &enable;
  const char* layers[] = {kValidationLayer};
  const char* extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                              VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  if (validate_) {
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = layers;
    info.enabledExtensionCount = 2;
    info.ppEnabledExtensionNames = extensions;
  }
  VkInstance handle = VK_NULL_HANDLE;
  const VkResult result = global_.CreateInstance(&info, nullptr, &handle);
  if (result != VK_SUCCESS) return NoInstance(result);
  auto functions = LoadInstance(global_, handle);
  if (!functions.ok()) {
    const auto destroy = reinterpret_cast<PFN_vkDestroyInstance>(
        global_.GetInstanceProcAddr(handle, "vkDestroyInstance"));
    if (destroy != nullptr) destroy(handle, nullptr);
    return functions.status();
  }
  handle_ = handle;
  functions_ = *functions;
  return absl::OkStatus();
}

absl::Status Instance::Listen() {
  const std::string failed = "the validation layers' messages can't be received";
  if (functions_.CreateDebugUtilsMessengerEXT == nullptr ||
      functions_.DestroyDebugUtilsMessengerEXT == nullptr) {
    return absl::FailedPreconditionError(failed);
  }
  const VkDebugUtilsMessengerCreateInfoEXT info = messages_.CreateInfo();
  return VkStatus(functions_.CreateDebugUtilsMessengerEXT(handle_, &info, nullptr, &messenger_),
                  failed);
}

absl::Status Instance::FindDevices(bool allow_cpu) {
  std::vector<VkPhysicalDevice> handles;
  VkResult result = VK_INCOMPLETE;
  while (result == VK_INCOMPLETE) {  // a device may come between the two calls
    uint32_t count = 0;
    result = functions_.EnumeratePhysicalDevices(handle_, &count, nullptr);
    if (result != VK_SUCCESS || count == 0) break;
    handles.resize(count);
    result = functions_.EnumeratePhysicalDevices(handle_, &count, handles.data());
    handles.resize(count);
  }
  if (result != VK_SUCCESS) return VkStatus(result, "the Vulkan devices could not be listed");
  std::vector<DeviceCaps> caps;
  for (const VkPhysicalDevice handle : handles) {
    auto query = QueryDevice(functions_, handle, api_version_);
    if (!query.ok()) return query.status();
    caps.push_back(MakeDeviceCaps(*query));
  }
  const std::vector<std::string> reasons = ReasonsAgainst(caps, allow_cpu);
  for (size_t i = 0; i < handles.size(); ++i) {
    auto heaps = std::make_shared<Heaps>(functions_, handles[i], caps[i]);
    devices_.push_back({handles[i], std::move(caps[i]), reasons[i], std::move(heaps)});
  }
  return absl::OkStatus();
}

std::string Instance::NoDeviceReason() const {
  if (devices_.empty()) return "Vulkan is installed, but its drivers show no device";
  std::vector<std::string> reasons;
  for (const FoundDevice& device : devices_) {
    if (device.reason.empty()) return "";
    reasons.push_back(device.reason);
  }
  return absl::StrCat("no Vulkan device can be used: ", absl::StrJoin(reasons, "; "));
}

}  // namespace trine::vulkan
