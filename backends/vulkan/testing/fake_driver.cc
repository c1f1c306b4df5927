#include "backends/vulkan/testing/fake_driver.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace trine::vulkan::testing {
namespace {

FakeDriver* fake = nullptr;

// Finds the struct of a type in a pNext chain.
template <class T, class Start>
T* InChain(Start* start, VkStructureType type) {
  using Base =
      std::conditional_t<std::is_const_v<Start>, const VkBaseInStructure, VkBaseOutStructure>;
  for (auto* at = reinterpret_cast<Base*>(start); at != nullptr;
       at = reinterpret_cast<Base*>(const_cast<VkBaseOutStructure*>(
           reinterpret_cast<const VkBaseOutStructure*>(at->pNext)))) {
    if (at->sType == type) return const_cast<T*>(reinterpret_cast<const T*>(at));
  }
  return nullptr;
}

// Adds the types of the structs in a pNext chain.
void NoteChain(const void* start, std::set<VkStructureType>* types) {
  for (const auto* at = static_cast<const VkBaseInStructure*>(start); at != nullptr;
       at = at->pNext) {
    types->insert(at->sType);
  }
}

// Copies an answer into the chain's struct, keeping its place in the chain.
template <class T, class Start>
void Answer(Start* start, VkStructureType type, const T& value) {
  T* out = InChain<T>(start, type);
  if (out == nullptr) return;
  void* next = out->pNext;
  *out = value;
  out->sType = type;
  out->pNext = next;
}

template <class T, class Source>
VkResult List(const std::vector<Source>& from, uint32_t* count, T* out,
              void (*put)(const Source&, T*)) {
  if (out == nullptr) {
    *count = static_cast<uint32_t>(from.size());
    return VK_SUCCESS;
  }
  const uint32_t n = std::min<uint32_t>(*count, static_cast<uint32_t>(from.size()));
  for (uint32_t i = 0; i < n; ++i) put(from[i], &out[i]);
  *count = n;
  return n < from.size() ? VK_INCOMPLETE : VK_SUCCESS;
}

DeviceQuery& DeviceOf(VkPhysicalDevice device) {
  return fake->devices[reinterpret_cast<uintptr_t>(device) - 1];
}

#define FAKE(name) VKAPI_ATTR VkResult VKAPI_CALL name
#define FAKE_VOID(name) VKAPI_ATTR void VKAPI_CALL name
#define FAIL_IF_TOLD(name) \
  if (const VkResult told = fake->Result("vk" #name); told != VK_SUCCESS) return told

// Defines the functions that create and destroy an object with one create info.
#define FAKE_OBJECT(Object, Info)                                                              \
  FAKE(Create##Object)(VkDevice, const Info*, const VkAllocationCallbacks*, Vk##Object* out) { \
    FAIL_IF_TOLD(Create##Object);                                                              \
    *out = fake->Make<Vk##Object>();                                                           \
    return VK_SUCCESS;                                                                         \
  }                                                                                            \
  FAKE_VOID(Destroy##Object)(VkDevice, Vk##Object object, const VkAllocationCallbacks*) {      \
    fake->live -= object != VK_NULL_HANDLE;                                                    \
  }

FAKE(EnumerateInstanceVersion)(uint32_t* version) {
  *version = fake->version;
  return fake->Result("vkEnumerateInstanceVersion");
}
FAKE(EnumerateInstanceLayerProperties)(uint32_t* count, VkLayerProperties* out) {
  return List<VkLayerProperties, std::string>(
      fake->layers, count, out, [](const std::string& name, VkLayerProperties* layer) {
        *layer = {};
        std::snprintf(layer->layerName, sizeof(layer->layerName), "%s", name.c_str());
      });
}
FAKE(EnumerateInstanceExtensionProperties)(const char*, uint32_t* count, VkExtensionProperties*) {
  *count = 0;
  return VK_SUCCESS;
}
FAKE(CreateInstance)(const VkInstanceCreateInfo*, const VkAllocationCallbacks*, VkInstance* out) {
  FAIL_IF_TOLD(CreateInstance);
  *out = fake->Make<VkInstance>();
  return VK_SUCCESS;
}
FAKE_VOID(DestroyInstance)(VkInstance, const VkAllocationCallbacks*) { --fake->live; }
FAKE(CreateDebugUtilsMessengerEXT)
(VkInstance, const VkDebugUtilsMessengerCreateInfoEXT*, const VkAllocationCallbacks*,
 VkDebugUtilsMessengerEXT* out) {
  FAIL_IF_TOLD(CreateDebugUtilsMessengerEXT);
  *out = fake->Make<VkDebugUtilsMessengerEXT>();
  return VK_SUCCESS;
}
FAKE_VOID(DestroyDebugUtilsMessengerEXT)
(VkInstance, VkDebugUtilsMessengerEXT, const VkAllocationCallbacks*) { --fake->live; }

FAKE(EnumeratePhysicalDevices)(VkInstance, uint32_t* count, VkPhysicalDevice* out) {
  FAIL_IF_TOLD(EnumeratePhysicalDevices);
  if (out != nullptr) {
    for (uint32_t i = 0; i < *count; ++i)
      out[i] = reinterpret_cast<VkPhysicalDevice>(uintptr_t{i} + 1);
  }
  *count = static_cast<uint32_t>(fake->devices.size());
  return VK_SUCCESS;
}
FAKE(EnumerateDeviceExtensionProperties)
(VkPhysicalDevice device, const char*, uint32_t* count, VkExtensionProperties* out) {
  FAIL_IF_TOLD(EnumerateDeviceExtensionProperties);
  return List<VkExtensionProperties, std::string>(
      DeviceOf(device).extensions, count, out,
      [](const std::string& name, VkExtensionProperties* extension) {
        *extension = {};
        std::snprintf(extension->extensionName, sizeof(extension->extensionName), "%s",
                      name.c_str());
      });
}
FAKE_VOID(GetPhysicalDeviceProperties)
(VkPhysicalDevice device, VkPhysicalDeviceProperties* out) { *out = DeviceOf(device).properties; }
FAKE_VOID(GetPhysicalDeviceProperties2)
(VkPhysicalDevice device, VkPhysicalDeviceProperties2* out) {
  const DeviceQuery& q = DeviceOf(device);
  NoteChain(out, &fake->asked);
  out->properties = q.properties;
  Answer(out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES, q.properties11);
  Answer(out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES, q.properties12);
  Answer(out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES, q.subgroup_sizes);
  Answer(out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES, q.int_dot);
  Answer(out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT, q.host_import);
  Answer(out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT, q.pci);
}
FAKE_VOID(GetPhysicalDeviceFeatures2)(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* out) {
  const DeviceQuery& q = DeviceOf(device);
  NoteChain(out, &fake->asked);
  out->features = q.features;
  Answer(out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, q.features11);
  Answer(out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, q.features12);
  Answer(out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
         q.subgroup_size_features);
  Answer(out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
         q.int_dot_features);
}
FAKE_VOID(GetPhysicalDeviceMemoryProperties2)
(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties2* out) {
  out->memoryProperties = DeviceOf(device).memory;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  std::fill_n(budget.heapBudget, VK_MAX_MEMORY_HEAPS, fake->budget);
  std::fill_n(budget.heapUsage, VK_MAX_MEMORY_HEAPS, fake->usage);
  Answer(out, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT, budget);
}
FAKE_VOID(GetPhysicalDeviceQueueFamilyProperties)
(VkPhysicalDevice device, uint32_t* count, VkQueueFamilyProperties* out) {
  List<VkQueueFamilyProperties, VkQueueFamilyProperties>(
      DeviceOf(device).queue_families, count, out,
      [](const VkQueueFamilyProperties& from, VkQueueFamilyProperties* to) { *to = from; });
}
FAKE(CreateDevice)
(VkPhysicalDevice, const VkDeviceCreateInfo* info, const VkAllocationCallbacks*, VkDevice* out) {
  FAIL_IF_TOLD(CreateDevice);
  fake->device_structs.clear();
  NoteChain(info->pNext, &fake->device_structs);
  fake->device_extensions = {info->ppEnabledExtensionNames,
                             info->ppEnabledExtensionNames + info->enabledExtensionCount};
  *out = fake->Make<VkDevice>();
  return VK_SUCCESS;
}
FAKE_VOID(DestroyDevice)(VkDevice, const VkAllocationCallbacks*) { --fake->live; }
FAKE_VOID(GetDeviceQueue)(VkDevice, uint32_t, uint32_t, VkQueue* out) {
  *out = reinterpret_cast<VkQueue>(uintptr_t{7});
}
FAKE(DeviceWaitIdle)(VkDevice) { return fake->Result("vkDeviceWaitIdle"); }

FAKE(AllocateMemory)
(VkDevice, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks*, VkDeviceMemory* out) {
  FAIL_IF_TOLD(AllocateMemory);
  *out = fake->Make<VkDeviceMemory>();
  fake->allocations.push_back(info->allocationSize);
  fake->memory_types.push_back(info->memoryTypeIndex);
  const auto* import = InChain<VkImportMemoryHostPointerInfoEXT>(
      info, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
  if (import != nullptr) fake->imports.push_back(import->pHostPointer);
  const bool in_place = import != nullptr && !fake->snapshots;
  if (in_place) fake->imported[*out] = static_cast<uint8_t*>(import->pHostPointer);
  // Large allocations are only counted.
  const bool kept = !in_place && info->allocationSize <= (uint64_t{64} << 20);
  // Arenas are large and hardly used: calloc makes their pages only when they are touched.
  fake->memory[*out].reset(kept ? static_cast<uint8_t*>(std::calloc(info->allocationSize, 1))
                                : nullptr);
  if (import != nullptr && kept) {
    std::memcpy(fake->memory[*out].get(), import->pHostPointer, info->allocationSize);
  }
  return VK_SUCCESS;
}
FAKE_VOID(FreeMemory)(VkDevice, VkDeviceMemory memory, const VkAllocationCallbacks*) {
  fake->imported.erase(memory);
  fake->live -= static_cast<int>(fake->memory.erase(memory));
}
FAKE(MapMemory)
(VkDevice, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize, VkMemoryMapFlags, void** out) {
  FAIL_IF_TOLD(MapMemory);
  *out = fake->memory[memory].get() + offset;
  return VK_SUCCESS;
}
FAKE(GetMemoryHostPointerPropertiesEXT)
(VkDevice, VkExternalMemoryHandleTypeFlagBits, const void*, VkMemoryHostPointerPropertiesEXT* out) {
  out->memoryTypeBits = ~0u;
  return fake->Result("vkGetMemoryHostPointerPropertiesEXT");
}

std::map<VkBuffer, uint64_t>& BufferSizes() {
  static std::map<VkBuffer, uint64_t> sizes;
  return sizes;
}
FAKE(CreateBuffer)
(VkDevice, const VkBufferCreateInfo* info, const VkAllocationCallbacks*, VkBuffer* out) {
  FAIL_IF_TOLD(CreateBuffer);
  *out = fake->Make<VkBuffer>();
  BufferSizes()[*out] = info->size;
  return VK_SUCCESS;
}
FAKE_VOID(DestroyBuffer)(VkDevice, VkBuffer buffer, const VkAllocationCallbacks*) {
  fake->live -= static_cast<int>(BufferSizes().erase(buffer));
}
FAKE_VOID(GetBufferMemoryRequirements)(VkDevice, VkBuffer buffer, VkMemoryRequirements* out) {
  *out = {BufferSizes()[buffer], 64, ~0u};
}
FAKE(BindBufferMemory)(VkDevice, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize) {
  fake->bound[buffer] = memory;
  return fake->Result("vkBindBufferMemory");
}

FAKE_OBJECT(ShaderModule, VkShaderModuleCreateInfo)
FAKE_OBJECT(DescriptorSetLayout, VkDescriptorSetLayoutCreateInfo)
FAKE_OBJECT(PipelineLayout, VkPipelineLayoutCreateInfo)
FAKE_OBJECT(DescriptorPool, VkDescriptorPoolCreateInfo)
FAKE_OBJECT(CommandPool, VkCommandPoolCreateInfo)
FAKE_OBJECT(QueryPool, VkQueryPoolCreateInfo)

FAKE(CreatePipelineCache)
(VkDevice, const VkPipelineCacheCreateInfo* info, const VkAllocationCallbacks*,
 VkPipelineCache* out) {
  FAIL_IF_TOLD(CreatePipelineCache);
  const auto* data = static_cast<const uint8_t*>(info->pInitialData);
  fake->initial_cache.assign(data, data + info->initialDataSize);
  *out = fake->Make<VkPipelineCache>();
  return VK_SUCCESS;
}
FAKE_VOID(DestroyPipelineCache)(VkDevice, VkPipelineCache cache, const VkAllocationCallbacks*) {
  fake->live -= cache != VK_NULL_HANDLE;
}
FAKE(GetPipelineCacheData)(VkDevice, VkPipelineCache, size_t* bytes, void* out) {
  FAIL_IF_TOLD(GetPipelineCacheData);
  if (out != nullptr) std::copy_n(fake->cache_data.data(), *bytes, static_cast<uint8_t*>(out));
  *bytes = fake->cache_data.size();
  return VK_SUCCESS;
}
FAKE(CreateComputePipelines)
(VkDevice, VkPipelineCache, uint32_t, const VkComputePipelineCreateInfo* info,
 const VkAllocationCallbacks*, VkPipeline* out) {
  FAIL_IF_TOLD(CreateComputePipelines);
  fake->pipeline_constants.clear();
  if (const VkSpecializationInfo* constants = info->stage.pSpecializationInfo) {
    const auto* words = static_cast<const uint32_t*>(constants->pData);
    fake->pipeline_constants.assign(words, words + constants->mapEntryCount);
  }
  const auto* size = InChain<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo>(
      &info->stage, VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO);
  fake->pipeline_subgroup_size = size != nullptr ? size->requiredSubgroupSize : 0;
  fake->subgroup_sizes.insert(fake->pipeline_subgroup_size);
  *out = fake->Make<VkPipeline>();
  return VK_SUCCESS;
}
FAKE_VOID(DestroyPipeline)(VkDevice, VkPipeline pipeline, const VkAllocationCallbacks*) {
  fake->live -= pipeline != VK_NULL_HANDLE;
}

FAKE(AllocateDescriptorSets)(VkDevice, const VkDescriptorSetAllocateInfo*, VkDescriptorSet* out) {
  FAIL_IF_TOLD(AllocateDescriptorSets);
  *out = reinterpret_cast<VkDescriptorSet>(uintptr_t{9});
  return VK_SUCCESS;
}
FAKE_VOID(UpdateDescriptorSets)
(VkDevice, uint32_t count, const VkWriteDescriptorSet* writes, uint32_t,
 const VkCopyDescriptorSet*) {
  for (uint32_t i = 0; i < count; ++i) {
    fake->descriptors.insert(fake->descriptors.end(), writes[i].pBufferInfo,
                             writes[i].pBufferInfo + writes[i].descriptorCount);
  }
}
FAKE(AllocateCommandBuffers)
(VkDevice, const VkCommandBufferAllocateInfo*, VkCommandBuffer* out) {
  FAIL_IF_TOLD(AllocateCommandBuffers);
  *out = reinterpret_cast<VkCommandBuffer>(uintptr_t{8});
  return VK_SUCCESS;
}
FAKE(BeginCommandBuffer)(VkCommandBuffer, const VkCommandBufferBeginInfo*) {
  fake->commands.push_back("begin");
  fake->recorded_copies.clear();
  return fake->Result("vkBeginCommandBuffer");
}
FAKE(EndCommandBuffer)(VkCommandBuffer) {
  fake->commands.push_back("end");
  return fake->Result("vkEndCommandBuffer");
}
FAKE_VOID(CmdBindPipeline)(VkCommandBuffer, VkPipelineBindPoint, VkPipeline) {
  fake->commands.push_back("pipeline");
}
FAKE_VOID(CmdBindDescriptorSets)
(VkCommandBuffer, VkPipelineBindPoint, VkPipelineLayout, uint32_t, uint32_t, const VkDescriptorSet*,
 uint32_t, const uint32_t*) {}
FAKE_VOID(CmdPushConstants)
(VkCommandBuffer, VkPipelineLayout, VkShaderStageFlags, uint32_t, uint32_t bytes, const void*) {
  fake->commands.push_back("push " + std::to_string(bytes));
}
FAKE_VOID(CmdDispatch)(VkCommandBuffer, uint32_t x, uint32_t y, uint32_t z) {
  fake->commands.push_back("dispatch " + std::to_string(x) + " " + std::to_string(y) + " " +
                           std::to_string(z));
}
FAKE_VOID(CmdCopyBuffer)
(VkCommandBuffer, VkBuffer from, VkBuffer to, uint32_t, const VkBufferCopy* region) {
  fake->recorded_copies.push_back({from, to, *region});
  fake->commands.push_back("copy " + std::to_string(region->size));
}
FAKE_VOID(CmdPipelineBarrier)
(VkCommandBuffer, VkPipelineStageFlags, VkPipelineStageFlags, VkDependencyFlags, uint32_t count,
 const VkMemoryBarrier* barriers, uint32_t, const VkBufferMemoryBarrier*, uint32_t,
 const VkImageMemoryBarrier*) {
  fake->commands.push_back("barrier");
  fake->barriers.insert(fake->barriers.end(), barriers, barriers + count);
}
FAKE_VOID(CmdResetQueryPool)(VkCommandBuffer, VkQueryPool, uint32_t, uint32_t) {}
FAKE_VOID(CmdWriteTimestamp)
(VkCommandBuffer, VkPipelineStageFlagBits, VkQueryPool, uint32_t query) {
  fake->commands.push_back("timestamp " + std::to_string(query));
}
FAKE(GetQueryPoolResults)
(VkDevice, VkQueryPool, uint32_t, uint32_t count, size_t, void* data, VkDeviceSize,
 VkQueryResultFlags) {
  FAIL_IF_TOLD(GetQueryPoolResults);
  auto* out = static_cast<uint64_t*>(data);
  for (uint32_t i = 0; i < count; ++i) out[i] = i * i;  // the i-th step takes 2 i - 1
  return VK_SUCCESS;
}
FAKE(CreateSemaphore)
(VkDevice, const VkSemaphoreCreateInfo*, const VkAllocationCallbacks*, VkSemaphore* out) {
  FAIL_IF_TOLD(CreateSemaphore);
  *out = fake->Make<VkSemaphore>();
  fake->timelines[*out] = 0;
  return VK_SUCCESS;
}
FAKE_VOID(DestroySemaphore)(VkDevice, VkSemaphore semaphore, const VkAllocationCallbacks*) {
  fake->live -= static_cast<int>(fake->timelines.erase(semaphore));
}
FAKE(GetSemaphoreCounterValue)(VkDevice, VkSemaphore semaphore, uint64_t* value) {
  FAIL_IF_TOLD(GetSemaphoreCounterValue);
  *value = fake->timelines[semaphore];
  return VK_SUCCESS;
}
FAKE(WaitSemaphores)(VkDevice, const VkSemaphoreWaitInfo* info, uint64_t timeout) {
  fake->wait_timeouts.push_back(timeout);
  FAIL_IF_TOLD(WaitSemaphores);
  return fake->timelines[info->pSemaphores[0]] >= info->pValues[0] ? VK_SUCCESS : VK_TIMEOUT;
}
uint8_t* BytesOf(VkBuffer buffer) {
  const VkDeviceMemory memory = fake->bound[buffer];
  const auto imported = fake->imported.find(memory);
  return imported != fake->imported.end() ? imported->second : fake->memory[memory].get();
}
void DoCopies() {
  for (const FakeDriver::Copy& copy : fake->recorded_copies) {
    if (fake->keeps_writes && fake->imported.count(fake->bound[copy.to]) != 0) continue;
    std::memcpy(BytesOf(copy.to) + copy.region.dstOffset,
                BytesOf(copy.from) + copy.region.srcOffset, copy.region.size);
  }
}
FAKE(QueueSubmit)(VkQueue, uint32_t count, const VkSubmitInfo* infos, VkFence) {
  FAIL_IF_TOLD(QueueSubmit);
  if (fake->copies && !fake->hangs) DoCopies();
  for (uint32_t i = 0; i < count; ++i) {
    ++fake->submissions;
    const auto* values = InChain<VkTimelineSemaphoreSubmitInfo>(
        &infos[i], VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
    if (fake->hangs) continue;
    fake->timelines[infos[i].pSignalSemaphores[0]] = values->pSignalSemaphoreValues[0];
  }
  return VK_SUCCESS;
}

PFN_vkVoidFunction Find(const char* name);
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetDeviceProcAddr(VkDevice, const char* name) {
  return Find(name);
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetInstanceProcAddr(VkInstance, const char* name) {
  return Find(name);
}

PFN_vkVoidFunction Find(const char* name) {
  if (fake->missing.contains(name)) return nullptr;
#define FOUND(function) \
  if (std::strcmp(name, "vk" #function) == 0) return reinterpret_cast<PFN_vkVoidFunction>(function);
  TRINE_VULKAN_GLOBAL_FUNCTIONS(FOUND)
  TRINE_VULKAN_INSTANCE_FUNCTIONS(FOUND, FOUND)
  TRINE_VULKAN_DEVICE_FUNCTIONS(FOUND, FOUND)
#undef FOUND
  return nullptr;
}

}  // namespace

FakeDriver::FakeDriver(std::vector<DeviceQuery> given)
    : devices(std::move(given)), before_(std::exchange(fake, this)) {}

FakeDriver::~FakeDriver() { fake = before_; }

PFN_vkGetInstanceProcAddr FakeDriver::Entry() { return GetInstanceProcAddr; }

void FakeDriver::Fail(const std::string& function, VkResult result, int call, bool for_good) {
  plans_[function] = {result, call, for_good};
}

VkResult FakeDriver::Result(const char* function) {
  ++calls[function];
  const auto plan = plans_.find(function);
  if (plan == plans_.end() || --plan->second.calls > 0) return VK_SUCCESS;
  const VkResult result = plan->second.result;
  if (!plan->second.for_good) plans_.erase(plan);
  return result;
}

}  // namespace trine::vulkan::testing
