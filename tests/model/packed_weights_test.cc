// Tests where packed weights are: a device's small ones together, each at the device's alignment.
#include "runtime/model/weights/packed_weights.h"

#include <deque>
#include <set>

#include "gtest/gtest.h"
#include "tests/model/shared_weights.h"

namespace trine {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class PackedWeightsTest : public SharedWeightsTest {
 protected:
  // A matrix of so many bytes, packed as it is.
  PackedWeight* Add(const std::shared_ptr<Device>& device, uint64_t bytes) {
    trine_tensor matrix{};
    matrix.dtype = TRINE_DTYPE_F32;
    matrix.rank = 2;
    matrix.dims[0] = 16;
    matrix.dims[1] = static_cast<int64_t>(bytes / 64);
    matrix.dims[2] = matrix.dims[3] = 1;
    trine_layout_info info{};
    info.layout = uint64_t{1} << 40;
    info.packed_bytes = bytes;
    info.group_rows = 1;
    info.group_bytes = 64;
    info.alignment = 64;
    auto layout = PackedLayout::Create(matrix, info, device->info().buffer_alignment);
    EXPECT_TRUE(layout.ok()) << layout.status();
    return weights().Add(device, &tensors_.emplace_back(), *layout);
  }
  PackedWeights& weights() { return *weights_of_; }
  static std::set<const trine_buffer*> Buffers(const PackedWeights& weights) {
    std::set<const trine_buffer*> buffers;
    for (const PackedWeight& weight : weights.items()) buffers.insert(weight.span.buffer);
    return buffers;
  }
  // Checks that weights don't overlap in their buffers, and are written and read there.
  static void ExpectApart(const PackedWeights& weights) {
    char mark = 'a';
    for (const PackedWeight& weight : weights.items()) {
      EXPECT_EQ(weight.span.bytes, weight.layout.packed_bytes());
      EXPECT_EQ(weight.span.offset % weight.device->info().buffer_alignment, 0u);
      EXPECT_EQ(weight.visible, weight.writable());
      const std::string text(weight.span.bytes, mark++);
      EXPECT_TRUE(weight.Write(0, text.data(), text.size()).ok());
    }
    mark = 'a';
    for (const PackedWeight& weight : weights.items()) {
      std::string text(weight.span.bytes, ' ');
      EXPECT_TRUE(weight.Read(0, text.data(), text.size()).ok());
      EXPECT_EQ(text, std::string(weight.span.bytes, mark)) << "of weight " << mark;
      EXPECT_EQ(static_cast<char>(*weight.visible), mark++);
    }
  }

  std::shared_ptr<Device> cpu_ = Open(TRINE_CPU_PLUGIN), other_ = Open(TRINE_CPU_PLUGIN);
  std::deque<gguf::TensorInfo> tensors_;
  std::unique_ptr<PackedWeights> weights_of_ = std::make_unique<PackedWeights>();
};

TEST_F(PackedWeightsTest, SmallOnesOfADeviceShareABuffer) {
  PackedWeight* const large = Add(cpu_, 5 * kMiB);
  PackedWeight* const first = Add(cpu_, 64);
  PackedWeight* const elsewhere = Add(other_, 128);
  PackedWeight* const second = Add(cpu_, 3 * 64);
  PackedWeight* const third = Add(cpu_, 2 * kMiB);
  ASSERT_TRUE(weights().Allocate().ok());
  EXPECT_EQ(Buffers(weights()).size(), 3u);
  EXPECT_EQ(first->span.buffer, second->span.buffer);
  EXPECT_EQ(first->span.buffer, third->span.buffer);
  EXPECT_NE(first->span.buffer, large->span.buffer);
  EXPECT_NE(first->span.buffer, elsewhere->span.buffer);
  EXPECT_LT(first->span.offset, second->span.offset);
  EXPECT_LT(second->span.offset, third->span.offset);
  ExpectApart(weights());
}

TEST_F(PackedWeightsTest, WhatHasMemoryKeepsIt) {
  PackedWeight* const first = Add(cpu_, 640);
  ASSERT_TRUE(weights().Allocate().ok());
  const trine_span was = first->span;
  Add(cpu_, 640);
  ASSERT_TRUE(weights().Allocate().ok());
  EXPECT_EQ(first->span.buffer, was.buffer);
  EXPECT_EQ(first->span.offset, was.offset);
  EXPECT_EQ(Buffers(weights()).size(), 2u);
  ExpectApart(weights());
  weights().Clear();
  EXPECT_TRUE(weights().empty());
}

TEST_F(PackedWeightsTest, ABufferIsNotForTooMany) {
  for (int i = 0; i < 30; ++i) Add(cpu_, 3 * kMiB);
  ASSERT_TRUE(weights().Allocate().ok());
  EXPECT_EQ(Buffers(weights()).size(), 2u);  // 21 in 64 MiB
  for (const PackedWeight& weight : weights().items()) {
    EXPECT_LE(weight.span.offset + weight.span.bytes, 64 * kMiB);
  }
}

}  // namespace
}  // namespace trine
