// Runs kernels through Kompute: kp::Algorithm makes and binds the pipeline, with the backend's
// device, buffers and command buffers. Nothing else of Kompute is used, in particular not its
// Manager, Sequence and Tensor, which have their own devices, queues and memory.
//
// Kompute ignores Vulkan's results where it makes layouts, pools and sets: running out of memory
// there goes unnoticed and may crash the driver. Its pipelines are not shared, not kept in the
// cache file, and have no required subgroup size, on which no result depends.
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/vulkan/exec/kernel_executor.h"
#include "kompute/Algorithm.hpp"
#include "kompute/Memory.hpp"

namespace trine::vulkan {
namespace {

// A range of a backend's buffer. Kompute only uses its descriptor: barriers and copies come from
// the recorder.
class BoundRange : public kp::Memory {
 public:
  BoundRange(std::shared_ptr<vk::Device> device, const BufferRange& range)
      : kp::Memory(nullptr, std::move(device), DataTypes::eUnsignedInt, MemoryTypes::eStorage, 1,
                   1),
        info_(range.buffer, range.offset, range.bytes) {
    mSize = 1;
    mDescriptorType = vk::DescriptorType::eStorageBuffer;
  }

  bool isInit() override { return true; }
  Type type() override { return Type::eTensor; }
  vk::WriteDescriptorSet constructDescriptorSet(vk::DescriptorSet set, uint32_t binding) override {
    return vk::WriteDescriptorSet(set, binding, 0, 1, mDescriptorType, nullptr, &info_);
  }
  void recordCopyFromStagingToDevice(const vk::CommandBuffer&) override {}
  void recordCopyFromDeviceToStaging(const vk::CommandBuffer&) override {}
  void recordPrimaryMemoryBarrier(const vk::CommandBuffer&, vk::AccessFlagBits, vk::AccessFlagBits,
                                  vk::PipelineStageFlagBits, vk::PipelineStageFlagBits) override {}
  void recordStagingMemoryBarrier(const vk::CommandBuffer&, vk::AccessFlagBits, vk::AccessFlagBits,
                                  vk::PipelineStageFlagBits, vk::PipelineStageFlagBits) override {}

 protected:
  void recordCopyFrom(const vk::CommandBuffer&, std::shared_ptr<kp::Tensor>) override {}
  void recordCopyFrom(const vk::CommandBuffer&, std::shared_ptr<kp::Image>) override {}

 private:
  vk::DescriptorBufferInfo info_;
};

class KomputeExecutor : public KernelExecutor {
 public:
  KomputeExecutor(Device& device, Pipelines& pipelines)
      : device_(device),
        pipelines_(pipelines),
        handle_(std::make_shared<vk::Device>(device.handle())) {}

  ~KomputeExecutor() override {
    if (!device_.abandoned()) return;
    for (auto& algorithm : algorithms_) static_cast<void>(algorithm.release());
  }

  void Begin(VkCommandBuffer commands) override { commands_ = commands; }

  absl::Status Prepare(const Dispatch& dispatch) override {
    const Shader& shader = *dispatch.shader;
    if (absl::Status status = device_.Health(); !status.ok()) return status;
    absl::Status status = pipelines_.Check(shader, dispatch.constants, /*subgroup_size=*/0);
    if (!status.ok()) return status;
    std::vector<uint32_t> push(dispatch.push.size() / sizeof(uint32_t));
    if (push.size() * sizeof(uint32_t) != dispatch.push.size()) {
      return absl::UnimplementedError(
          absl::StrCat("shader ", shader.name, ": push constants that are no words"));
    }
    if (!push.empty()) std::memcpy(push.data(), dispatch.push.data(), dispatch.push.size());
    try {
      std::vector<std::shared_ptr<kp::Memory>> memory;
      for (const Binding& binding : dispatch.buffers) {
        memory.push_back(std::make_shared<BoundRange>(handle_, binding.range));
      }
      // Takes two steps, because an exception in the noexcept constructor would end the program.
      auto algorithm = std::make_unique<kp::Algorithm>(handle_);
      algorithm->rebuild<uint32_t, uint32_t>(memory,
                                             {shader.words, shader.words + shader.word_count},
                                             dispatch.groups, dispatch.constants, push);
      algorithms_.push_back(std::move(algorithm));
    } catch (const vk::SystemError& error) {
      return device_.Check(static_cast<VkResult>(error.code().value()), Failure(shader, error));
    } catch (const std::exception& error) {
      return absl::InternalError(Failure(shader, error));
    }
    return absl::OkStatus();
  }

  void Record(const Dispatch&) override {
    kp::Algorithm& algorithm = *algorithms_.back();
    const vk::CommandBuffer commands(commands_);
    algorithm.recordBindCore(commands);
    algorithm.recordBindPush(commands);
    algorithm.recordDispatch(commands);
  }

 private:
  static std::string Failure(const Shader& shader, const std::exception& error) {
    return absl::StrCat("shader ", shader.name, ": Kompute made no kernel of it: ", error.what());
  }

  Device& device_;
  Pipelines& pipelines_;
  std::shared_ptr<vk::Device> handle_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  std::vector<std::unique_ptr<kp::Algorithm>> algorithms_;  // one for each dispatch so far
};

}  // namespace

std::unique_ptr<KernelExecutor> MakeKomputeExecutor(Device& device, Pipelines& pipelines) {
  return std::make_unique<KomputeExecutor>(device, pipelines);
}

}  // namespace trine::vulkan
