#include "backends/vulkan/device/instance.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/vulkan/device/loader.h"

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

// Returns a driver's rank; lower is better. Mesa's drivers for AMD and Intel are known best.
int DriverRank(const DeviceCaps& device) {
  switch (device.driver_id) {
    case VK_DRIVER_ID_MESA_RADV:
    case VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA:
    case VK_DRIVER_ID_NVIDIA_PROPRIETARY:
      return 0;
    case VK_DRIVER_ID_AMD_OPEN_SOURCE:
      return 1;
    default:
      return 2;
  }
}

bool SameChip(const DeviceCaps& a, const DeviceCaps& b) {
  const bool known = std::any_of(a.uuid.begin(), a.uuid.end(), [](uint8_t x) { return x != 0; });
  return known && a.uuid == b.uuid;
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
  auto application = Info<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pApplicationName = application.pEngineName = "trine";
  application.apiVersion = api_version_;
  VkDebugUtilsMessengerCreateInfoEXT messenger = messages_.CreateInfo();
  const VkValidationFeatureEnableEXT enable =
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  auto features = Info<VkValidationFeaturesEXT>(VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT);
  features.pNext = &messenger;  // for messages while the instance is made and destroyed
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = &enable;
  const char* layers[] = {kValidationLayer};
  const char* extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                              VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  auto info = Info<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
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
  while (result == VK_INCOMPLETE) {  // a device may appear between the two calls
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

Heaps::Heaps(const InstanceTable& functions, VkPhysicalDevice device, const DeviceCaps& caps)
    : functions_(functions),
      device_(device),
      memory_(caps.memory),
      driver_tells_(caps.memory_budget) {}

std::array<uint64_t, VK_MAX_MEMORY_HEAPS> Heaps::LeftOfAll() const {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  if (driver_tells_) {
    budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
    auto properties = Info<VkPhysicalDeviceMemoryProperties2>(
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2);
    properties.pNext = &budget;
    functions_.GetPhysicalDeviceMemoryProperties2(device_, &properties);
  }
  std::array<uint64_t, VK_MAX_MEMORY_HEAPS> left{};
  for (uint32_t i = 0; i < memory_.memoryHeapCount; ++i) {
    const uint64_t all = driver_tells_ ? budget.heapBudget[i] : memory_.memoryHeaps[i].size;
    const uint64_t used = driver_tells_ ? budget.heapUsage[i] : used_[i].load();
    left[i] = all - std::min(all, used);
  }
  return left;
}

uint64_t Heaps::Left(uint32_t heap) const { return LeftOfAll()[heap]; }

uint64_t Heaps::FreeBytes() const {
  const std::array<uint64_t, VK_MAX_MEMORY_HEAPS> left = LeftOfAll();
  uint64_t own = 0, all = 0;
  bool has_own = false;
  for (uint32_t i = 0; i < memory_.memoryHeapCount; ++i) {
    all += left[i];
    if ((memory_.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0) continue;
    has_own = true;
    own += left[i];
  }
  return has_own ? own : all;
}

uint64_t Heaps::UsedBytes() const {
  uint64_t used = 0;
  for (const std::atomic<uint64_t>& bytes : used_) used += bytes;
  return used;
}

std::vector<std::string> ReasonsAgainst(const std::vector<DeviceCaps>& devices, bool allow_cpu) {
  std::vector<std::string> reasons(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    reasons[i] = devices[i].unusable;
    if (reasons[i].empty() && devices[i].kind == DeviceKind::kCpu && !allow_cpu) {
      reasons[i] =
          absl::StrCat(devices[i].name, " runs on the CPU; TRINE_VULKAN_ALLOW_CPU=1 admits it");
    }
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    for (size_t j = 0; j < devices.size() && reasons[i].empty(); ++j) {
      if (i == j || !reasons[j].empty() || !SameChip(devices[i], devices[j])) continue;
      const int mine = DriverRank(devices[i]), other = DriverRank(devices[j]);
      if (other < mine || (other == mine && j < i)) {
        reasons[i] =
            absl::StrCat(devices[i].name, " under ", devices[i].driver, " is the same chip as ",
                         devices[j].name, " under ", devices[j].driver);
      }
    }
  }
  return reasons;
}

}  // namespace trine::vulkan
