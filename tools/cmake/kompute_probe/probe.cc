// Uses what kompute_executor.cc needs of Kompute, and no more.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kompute/Algorithm.hpp"
#include "kompute/Memory.hpp"

namespace {

class Probe : public kp::Memory {
 public:
  explicit Probe(std::shared_ptr<vk::Device> device)
      : kp::Memory(nullptr, std::move(device), DataTypes::eUnsignedInt, MemoryTypes::eStorage, 1,
                   1) {
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

}  // namespace

extern "C" void Record(VkDevice device, VkCommandBuffer commands) {
  const auto shared = std::make_shared<vk::Device>(device);
  kp::Algorithm algorithm(shared);
  algorithm.rebuild<uint32_t, uint32_t>({std::make_shared<Probe>(shared)}, {0}, {1, 1, 1}, {1},
                                        {1});
  algorithm.recordBindCore(commands);
  algorithm.recordBindPush(commands);
  algorithm.recordDispatch(commands);
}
