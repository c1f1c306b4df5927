#include "backends/vulkan/device_query.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "backends/vulkan/vk_status.h"

namespace trine::vulkan {
namespace {

// Puts `entry` at the end of the chain that `tail` points into.
template <class T>
void Chain(void**& tail, T& entry, VkStructureType type) {
  entry.sType = type;
  entry.pNext = nullptr;
  *tail = &entry;
  tail = &entry.pNext;
}

absl::Status QueryExtensions(const InstanceTable& functions, VkPhysicalDevice device,
                             DeviceQuery* query) {
  std::vector<VkExtensionProperties> found;
  VkResult result = VK_INCOMPLETE;
  while (result == VK_INCOMPLETE) {  // the number may grow between the two calls
    uint32_t count = 0;
    result = functions.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
    if (result != VK_SUCCESS) break;
    found.resize(count);
    result = functions.EnumerateDeviceExtensionProperties(device, nullptr, &count, found.data());
    found.resize(count);
  }
  if (result != VK_SUCCESS) {
    return VkStatus(result, absl::StrCat("the extensions of ", query->properties.deviceName,
                                         " could not be listed"));
  }
  for (const VkExtensionProperties& extension : found) {
    query->extensions.emplace_back(extension.extensionName);
  }
  return absl::OkStatus();
}

void QueryProperties(const InstanceTable& functions, VkPhysicalDevice device, DeviceQuery* q) {
  const bool v13 = q->properties.apiVersion >= VK_API_VERSION_1_3;
  VkPhysicalDeviceProperties2 top{};
  top.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  void** tail = &top.pNext;
  Chain(tail, q->properties11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
  Chain(tail, q->properties12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
  if (v13 || q->Has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) {
    Chain(tail, q->subgroup_sizes,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
  }
  if (v13 || q->Has(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME)) {
    Chain(tail, q->int_dot,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES);
  }
  if (q->Has(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) {
    Chain(tail, q->host_import,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT);
  }
  if (q->Has(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME)) {
    Chain(tail, q->pci, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT);
  }
  functions.GetPhysicalDeviceProperties2(device, &top);
}

void QueryFeatures(const InstanceTable& functions, VkPhysicalDevice device, DeviceQuery* q) {
  const bool v13 = q->properties.apiVersion >= VK_API_VERSION_1_3;
  VkPhysicalDeviceFeatures2 top{};
  top.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  void** tail = &top.pNext;
  Chain(tail, q->features11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
  Chain(tail, q->features12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  if (v13 || q->Has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) {
    Chain(tail, q->subgroup_size_features,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
  }
  if (v13 || q->Has(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME)) {
    Chain(tail, q->int_dot_features,
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES);
  }
  functions.GetPhysicalDeviceFeatures2(device, &top);
  q->features = top.features;
}

}  // namespace

bool DeviceQuery::Has(const char* extension) const {
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

absl::StatusOr<DeviceQuery> QueryDevice(const InstanceTable& functions, VkPhysicalDevice device,
                                        uint32_t instance_version) {
  DeviceQuery query;
  functions.GetPhysicalDeviceProperties(device, &query.properties);
  query.properties.apiVersion = std::min(query.properties.apiVersion, instance_version);
  if (query.properties.apiVersion < VK_API_VERSION_1_2) return query;
  if (absl::Status status = QueryExtensions(functions, device, &query); !status.ok()) return status;
  QueryProperties(functions, device, &query);
  QueryFeatures(functions, device, &query);
  VkPhysicalDeviceMemoryProperties2 memory{};
  memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  functions.GetPhysicalDeviceMemoryProperties2(device, &memory);
  query.memory = memory.memoryProperties;
  uint32_t count = 0;
  functions.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  query.queue_families.resize(count);
  functions.GetPhysicalDeviceQueueFamilyProperties(device, &count, query.queue_families.data());
  return query;
}

}  // namespace trine::vulkan
