#include "backends/vulkan/exec/pipelines.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/vulkan/device/loader.h"
#include "kernels/vulkan/spirv/shaders.h"

namespace trine::vulkan {
namespace {

constexpr char kMagic[] = "trine-vulkan-pipelines-1";

std::vector<uint8_t> KeyOf(const DeviceCaps& caps, uint64_t shaders_hash) {
  std::vector<uint8_t> key;
  AppendBytes(&key, kMagic);
  AppendBytes(&key, caps.uuid);
  AppendBytes(&key, caps.driver_id);
  AppendBytes(&key, caps.driver_version);
  AppendBytes(&key, caps.pipeline_cache_uuid);
  AppendBytes(&key, shaders_hash);
  return key;
}

}  // namespace

Pipelines::Pipelines(Device& device, std::string cache_path)
    : device_(device), file_(std::move(cache_path), device.caps(), HashOfAllShaders()) {}

absl::StatusOr<std::unique_ptr<Pipelines>> Pipelines::Create(Device& device,
                                                             std::string cache_path) {
  std::unique_ptr<Pipelines> pipelines(new Pipelines(device, std::move(cache_path)));
  if (absl::Status status = pipelines->CreateCache(); !status.ok()) return status;
  return pipelines;
}

Pipelines::~Pipelines() {
  if (device_.abandoned()) return;
  const DeviceTable& vk = device_.functions();
  for (const auto& [key, pipeline] : pipelines_) {
    vk.DestroyPipeline(device_.handle(), pipeline.handle, nullptr);
  }
  for (const Layout& layout : layouts_) {
    vk.DestroyPipelineLayout(device_.handle(), layout.pipeline, nullptr);
    vk.DestroyDescriptorSetLayout(device_.handle(), layout.set, nullptr);
  }
  vk.DestroyPipelineCache(device_.handle(), cache_, nullptr);
}

absl::Status Pipelines::CreateCache() {
  const std::vector<uint8_t> kept = file_.Read();
  auto info = Info<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
  info.initialDataSize = kept.size();
  info.pInitialData = kept.data();
  const auto create = [&] {
    return device_.functions().CreatePipelineCache(device_.handle(), &info, nullptr, &cache_);
  };
  VkResult result = create();
  if (result != VK_SUCCESS && !kept.empty()) {  // tries without the kept data
    info.initialDataSize = 0;
    info.pInitialData = nullptr;
    result = create();
  }
  return device_.Check(result, "no pipeline cache could be made");
}

absl::Status Pipelines::Check(const Shader& shader, std::span<const uint32_t> constants,
                              uint32_t subgroup_size) const {
  const DeviceCaps& caps = device_.caps();
  if (const std::string missing = MissingForShader(caps, shader); !missing.empty()) {
    return absl::UnimplementedError(missing);
  }
  const uint32_t workgroup = constants.empty() ? 0 : constants[0];
  if (workgroup == 0 || workgroup > caps.max_workgroup_invocations ||
      workgroup > caps.max_workgroup_size[0]) {
    return absl::InvalidArgumentError(absl::StrCat("shader ", shader.name, ": a workgroup of ",
                                                   workgroup, "; ", caps.name, " has 1 to ",
                                                   caps.max_workgroup_invocations));
  }
  if (subgroup_size == 0) return absl::OkStatus();
  if (!caps.can_require_subgroup_size || subgroup_size < caps.min_subgroup_size ||
      subgroup_size > caps.max_subgroup_size || (subgroup_size & (subgroup_size - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shader ", shader.name, ": ", caps.name, " can't be held to subgroups of ", subgroup_size));
  }
  if (workgroup % subgroup_size != 0 || workgroup / subgroup_size > caps.max_workgroup_subgroups) {
    return absl::InvalidArgumentError(
        absl::StrCat("shader ", shader.name, ": a workgroup of ", workgroup, " is not 1 to ",
                     caps.max_workgroup_subgroups, " whole subgroups of ", subgroup_size));
  }
  return absl::OkStatus();
}

absl::StatusOr<Pipelines::Layout> Pipelines::LayoutFor(uint32_t bindings) {
  Layout& layout = layouts_[bindings];
  if (layout.pipeline != VK_NULL_HANDLE) return layout;
  const DeviceTable& vk = device_.functions();
  if (layout.set == VK_NULL_HANDLE) {
    std::array<VkDescriptorSetLayoutBinding, kMaxShaderBindings> list{};
    for (uint32_t i = 0; i < bindings; ++i) {
      list[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    }
    auto set =
        Info<VkDescriptorSetLayoutCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
    set.bindingCount = bindings;
    set.pBindings = list.data();
    absl::Status status =
        device_.Check(vk.CreateDescriptorSetLayout(device_.handle(), &set, nullptr, &layout.set),
                      absl::StrCat("no layout of ", bindings, " buffers could be made"));
    if (!status.ok()) return status;
  }
  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, kMaxPushBytes};
  auto info = Info<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  info.setLayoutCount = 1;
  info.pSetLayouts = &layout.set;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &push;
  absl::Status status =
      device_.Check(vk.CreatePipelineLayout(device_.handle(), &info, nullptr, &layout.pipeline),
                    absl::StrCat("no pipeline layout of ", bindings, " buffers could be made"));
  if (!status.ok()) return status;
  return layout;
}

absl::StatusOr<VkPipeline> Pipelines::Compile(const Shader& shader,
                                              std::span<const uint32_t> constants,
                                              uint32_t subgroup_size, VkPipelineLayout layout) {
  const DeviceTable& vk = device_.functions();
  auto code = Info<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  code.codeSize = shader.word_count * sizeof(uint32_t);
  code.pCode = shader.words;
  VkShaderModule module = VK_NULL_HANDLE;
  absl::Status status =
      device_.Check(vk.CreateShaderModule(device_.handle(), &code, nullptr, &module),
                    absl::StrCat("shader ", shader.name, " could not be loaded"));
  if (!status.ok()) return status;

  std::vector<VkSpecializationMapEntry> entries;
  for (uint32_t i = 0; i < constants.size(); ++i) entries.push_back({i, i * 4, 4});
  const VkSpecializationInfo special{static_cast<uint32_t>(entries.size()), entries.data(),
                                     constants.size_bytes(), constants.data()};
  auto required = Info<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo>(
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO);
  required.requiredSubgroupSize = subgroup_size;
  auto info = Info<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.layout = layout;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &special;
  if (subgroup_size != 0) {
    info.stage.pNext = &required;
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  }
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result =
      vk.CreateComputePipelines(device_.handle(), cache_, 1, &info, nullptr, &pipeline);
  vk.DestroyShaderModule(device_.handle(), module, nullptr);
  status = device_.Check(result, absl::StrCat("shader ", shader.name, " could not be compiled"));
  if (!status.ok()) return status;
  return pipeline;
}

absl::StatusOr<Pipeline> Pipelines::Get(const Shader& shader, std::span<const uint32_t> constants,
                                        uint32_t subgroup_size) {
  if (absl::Status status = device_.Health(); !status.ok()) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  Key key(&shader, {constants.begin(), constants.end()}, subgroup_size);
  if (const auto found = pipelines_.find(key); found != pipelines_.end()) return found->second;
  if (absl::Status status = Check(shader, constants, subgroup_size); !status.ok()) {
    return status;
  }
  const auto layout = LayoutFor(shader.binding_count);
  if (!layout.ok()) return layout.status();
  const auto handle = Compile(shader, constants, subgroup_size, layout->pipeline);
  if (!handle.ok()) return handle.status();
  changed_ = true;
  const Pipeline pipeline{*handle, layout->pipeline, layout->set};
  pipelines_.emplace(std::move(key), pipeline);
  return pipeline;
}

absl::Status Pipelines::Save() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!changed_ || file_.path().empty()) return absl::OkStatus();
  const DeviceTable& vk = device_.functions();
  const std::string failed = "the compiled pipelines could not be had";
  size_t bytes = 0;
  absl::Status status =
      device_.Check(vk.GetPipelineCacheData(device_.handle(), cache_, &bytes, nullptr), failed);
  if (!status.ok()) return status;
  std::vector<uint8_t> data(bytes);
  status =
      device_.Check(vk.GetPipelineCacheData(device_.handle(), cache_, &bytes, data.data()), failed);
  if (!status.ok()) return status;
  data.resize(bytes);
  status = file_.Write(data);
  changed_ = !status.ok();
  return status;
}

PipelineCacheFile::PipelineCacheFile(std::string path, const DeviceCaps& caps,
                                     uint64_t shaders_hash)
    : file_(std::move(path), KeyOf(caps, shaders_hash)),
      vendor_id_(caps.vendor_id),
      device_id_(caps.device_id),
      cache_uuid_(caps.pipeline_cache_uuid) {}

std::vector<uint8_t> PipelineCacheFile::Read() const {
  std::optional<std::vector<uint8_t>> data = file_.Read();
  if (!data.has_value()) return {};
  // Drivers should ignore another driver's data, but some have crashed on it.
  VkPipelineCacheHeaderVersionOne header{};
  if (data->size() < sizeof(header)) return {};
  std::memcpy(&header, data->data(), sizeof(header));
  if (header.headerVersion != VK_PIPELINE_CACHE_HEADER_VERSION_ONE ||
      header.vendorID != vendor_id_ || header.deviceID != device_id_ ||
      std::memcmp(header.pipelineCacheUUID, cache_uuid_.data(), cache_uuid_.size()) != 0) {
    return {};
  }
  return *std::move(data);
}

std::string DefaultPipelineCachePath(const DeviceCaps& caps) {
  return CachePath(caps, ".pipelines");
}

}  // namespace trine::vulkan
