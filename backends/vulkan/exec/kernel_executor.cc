#include "backends/vulkan/exec/kernel_executor.h"

#include "absl/status/statusor.h"

namespace trine::vulkan {
namespace {

constexpr uint32_t kPoolSets = 128, kPoolDescriptors = 1024;

// Runs kernels through this project's own pipelines and descriptor sets. Every build has it, and it
// can do all that other executors can.
class NativeExecutor : public KernelExecutor {
 public:
  NativeExecutor(Device& device, Pipelines& pipelines) : device_(device), pipelines_(pipelines) {}
  ~NativeExecutor() override;

  void Begin(VkCommandBuffer commands) override;
  absl::Status Prepare(const Dispatch& dispatch) override;
  void Record(const Dispatch& dispatch) override;

 private:
  absl::StatusOr<VkDescriptorSet> MakeSet(const std::vector<Binding>& buffers);

  Device& device_;
  Pipelines& pipelines_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  Pipeline prepared_;
  VkDescriptorSet prepared_set_ = VK_NULL_HANDLE;
  VkPipeline bound_ = VK_NULL_HANDLE;
  std::vector<VkDescriptorPool> pools_;
  uint32_t sets_left_ = 0, descriptors_left_ = 0;  // in the newest pool
};

NativeExecutor::~NativeExecutor() {
  if (device_.abandoned()) return;
  for (const VkDescriptorPool pool : pools_) {
    device_.functions().DestroyDescriptorPool(device_.handle(), pool, nullptr);
  }
}

void NativeExecutor::Begin(VkCommandBuffer commands) {
  commands_ = commands;
  bound_ = VK_NULL_HANDLE;
}

absl::StatusOr<VkDescriptorSet> NativeExecutor::MakeSet(const std::vector<Binding>& buffers) {
  const DeviceTable& vk = device_.functions();
  const uint32_t count = static_cast<uint32_t>(buffers.size());
  if (sets_left_ == 0 || descriptors_left_ < count) {
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kPoolDescriptors};
    auto info = Info<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
    info.maxSets = kPoolSets;
    info.poolSizeCount = 1;
    info.pPoolSizes = &size;
    VkDescriptorPool pool = VK_NULL_HANDLE;
    absl::Status status =
        device_.Check(vk.CreateDescriptorPool(device_.handle(), &info, nullptr, &pool),
                      "no descriptor pool could be made");
    if (!status.ok()) return status;
    pools_.push_back(pool);
    sets_left_ = kPoolSets;
    descriptors_left_ = kPoolDescriptors;
  }
  auto allocate = Info<VkDescriptorSetAllocateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
  allocate.descriptorPool = pools_.back();
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &prepared_.set_layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  absl::Status status = device_.Check(vk.AllocateDescriptorSets(device_.handle(), &allocate, &set),
                                      "no descriptor set could be made");
  if (!status.ok()) return status;
  sets_left_ -= 1;
  descriptors_left_ -= count;
  std::array<VkDescriptorBufferInfo, kMaxShaderBindings> infos;
  std::array<VkWriteDescriptorSet, kMaxShaderBindings> writes;
  for (uint32_t i = 0; i < count; ++i) {
    const BufferRange& range = buffers[i].range;
    infos[i] = {range.buffer, range.offset, range.bytes};
    writes[i] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, set,       i,      0, 1,
                 VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,      nullptr, &infos[i], nullptr};
  }
  vk.UpdateDescriptorSets(device_.handle(), count, writes.data(), 0, nullptr);
  return set;
}

absl::Status NativeExecutor::Prepare(const Dispatch& dispatch) {
  const auto pipeline =
      pipelines_.Get(*dispatch.shader, dispatch.constants, dispatch.subgroup_size);
  if (!pipeline.ok()) return pipeline.status();
  prepared_ = *pipeline;
  const auto set = MakeSet(dispatch.buffers);
  if (!set.ok()) return set.status();
  prepared_set_ = *set;
  return absl::OkStatus();
}

void NativeExecutor::Record(const Dispatch& dispatch) {
  const DeviceTable& vk = device_.functions();
  if (bound_ != prepared_.handle) {
    vk.CmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, prepared_.handle);
    bound_ = prepared_.handle;
  }
  vk.CmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, prepared_.layout, 0, 1,
                           &prepared_set_, 0, nullptr);
  if (!dispatch.push.empty()) {
    vk.CmdPushConstants(commands_, prepared_.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                        static_cast<uint32_t>(dispatch.push.size()), dispatch.push.data());
  }
  vk.CmdDispatch(commands_, dispatch.groups[0], dispatch.groups[1], dispatch.groups[2]);
}

}  // namespace

std::unique_ptr<KernelExecutor> MakeKernelExecutor(Executor which, Device& device,
                                                   Pipelines& pipelines) {
#if TRINE_VULKAN_KOMPUTE
  if (which == Executor::kKompute) return MakeKomputeExecutor(device, pipelines);
#endif
  static_cast<void>(which);  // OverrideTuning refuses executors that are not built
  return std::make_unique<NativeExecutor>(device, pipelines);
}

}  // namespace trine::vulkan
