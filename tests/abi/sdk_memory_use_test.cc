#include "gtest/gtest.h"
#include "tests/abi/graph_builder.h"

namespace trine::sdk {
namespace {

class MemoryUseTest : public ::testing::Test {
 protected:
  // Adds a temporary of its own, or over the memory of another.
  uint32_t Temp(std::vector<int64_t> dims) {
    return builder_.Tensor(TRINE_DTYPE_F32, std::move(dims), TRINE_ROLE_TEMP);
  }
  uint32_t Over(uint32_t tensor, const std::vector<int64_t>& dims, uint64_t offset = 0,
                const std::vector<int64_t>& strides = {}) {
    trine_tensor t = builder_.tensors[tensor];
    t.rank = static_cast<uint32_t>(dims.size());
    t.offset += offset;
    std::copy(dims.begin(), dims.end(), t.dims);
    std::copy(strides.begin(), strides.end(), t.strides);
    builder_.tensors.push_back(t);
    return static_cast<uint32_t>(builder_.tensors.size() - 1);
  }
  void Scale(uint32_t x, uint32_t y) {
    builder_.Op(TRINE_OP_SCALE, {x}, {y}, trine_scale_attr{0, 2.0f});
  }
  bool DoOverlap(uint32_t a, uint32_t b) {
    return Overlap(builder_.tensors[a], builder_.tensors[b], Max());
  }
  bool DoesCover(uint32_t a, uint32_t b) {
    return Covers(builder_.tensors[a], builder_.tensors[b], Max());
  }
  LaterUses Uses(uint32_t op, uint32_t tensor) {
    EXPECT_EQ(builder_.Refusal(&graph_), "");
    return UsesAfter(graph_, op, tensor);
  }
  std::vector<int64_t> Max() const {
    std::vector<int64_t> max;
    for (const trine_param& p : builder_.params) max.push_back(p.max);
    return max;
  }

  GraphBuilder builder_;
  Graph graph_;
};

TEST_F(MemoryUseTest, RangesOverlapWithinASlot) {
  const uint32_t x = Temp({8, 4}), other = Temp({8, 4});
  EXPECT_TRUE(DoOverlap(x, Over(x, {8}, 32)));
  EXPECT_FALSE(DoOverlap(Over(x, {8}), Over(x, {8}, 32)));
  EXPECT_FALSE(DoOverlap(x, other));
}

TEST_F(MemoryUseTest, AStoreLeavesWhatItsTokensDoNotReach) {
  const uint32_t cache = builder_.Tensor(TRINE_DTYPE_F32, {8, 16, 1, 1}, TRINE_ROLE_TEMP);
  const uint32_t flat = Over(cache, {128});
  Scale(Temp({128}), flat);
  builder_.Op(TRINE_OP_KV_STORE, {Temp({8, 1, 2}), builder_.I32({2})}, {cache});
  Scale(flat, Temp({128}));
  const LaterUses uses = Uses(0, flat);
  ASSERT_EQ(uses.reads.size(), 1u);
  EXPECT_EQ(uses.reads[0].op, 2u);
}

TEST_F(MemoryUseTest, ColumnsBesideEachOtherDoNotOverlap) {
  const int64_t m = builder_.Param(1, 16);
  const uint32_t x = Temp({24, m});
  const uint32_t left = Over(x, {8, m}, 0, {0, 96}), right = Over(x, {16, m}, 32, {0, 96});
  EXPECT_FALSE(DoOverlap(left, right));
  EXPECT_TRUE(DoOverlap(x, right));
  EXPECT_TRUE(DoOverlap(left, Over(x, {16, m}, 16, {0, 96})));
  EXPECT_TRUE(DoOverlap(Over(x, {4, m}, 80, {0, 96}), Over(x, {4, 2}, 176, {0, 96}))) << "a row on";
}

TEST_F(MemoryUseTest, CoversWhateverTheParametersAre) {
  const int64_t m = builder_.Param(1, 16), r = builder_.Param(1, 16);
  const uint32_t x = Temp({24, m});
  EXPECT_TRUE(DoesCover(x, Over(x, {16, m}, 32, {0, 96})));
  EXPECT_TRUE(DoesCover(x, Over(x, {8, 3, m})));
  EXPECT_TRUE(DoesCover(x, Over(x, {8, m})));
  EXPECT_FALSE(DoesCover(x, Over(x, {24, r}))) << "another parameter may be larger";
  EXPECT_TRUE(DoesCover(Over(x, {24, 16}), x));
  EXPECT_FALSE(DoesCover(x, Over(x, {24, 16}))) << "the parameter may be smaller";
  EXPECT_FALSE(DoesCover(Over(x, {16, m}, 32, {0, 96}), Over(x, {8, m}, 32))) << "it has gaps";
}

TEST_F(MemoryUseTest, ReadersUntilTheMemoryIsWrittenAnew) {
  const int64_t m = builder_.Param(1, 16);
  const uint32_t in = builder_.F32({8, m}), x = Temp({8, m}), y = builder_.F32({8, m});
  Scale(in, x);
  Scale(x, y);
  Scale(in, Over(x, {8, 1, m}));  // other values in x's memory
  Scale(x, y);
  const LaterUses uses = Uses(0, x);
  ASSERT_EQ(uses.reads.size(), 1u);
  EXPECT_EQ(uses.reads[0].op, 1u);
  EXPECT_FALSE(uses.outlives);
}

TEST_F(MemoryUseTest, AnOpInPlaceReadsBeforeItWrites) {
  const uint32_t in = builder_.F32({8}), x = Temp({8});
  Scale(in, x);
  Scale(x, x);
  EXPECT_EQ(Uses(0, x).reads.size(), 1u);
  EXPECT_EQ(Uses(1, x).reads.size(), 0u);
}

TEST_F(MemoryUseTest, PartsWrittenAnewAreNoReadersOfTheOldOnes) {
  const uint32_t in = builder_.F32({4}), x = Temp({8});
  const uint32_t half = Over(x, {4});
  Scale(builder_.F32({8}), x);
  Scale(in, half);
  Scale(half, in);
  EXPECT_TRUE(Uses(0, x).reads.empty());
  Scale(x, builder_.F32({8}));
  const LaterUses uses = Uses(0, x);
  ASSERT_EQ(uses.reads.size(), 1u) << "the other half";
  EXPECT_EQ(uses.reads[0].op, 3u);
}

TEST_F(MemoryUseTest, WhatIsNoTemporaryOutlivesTheRun) {
  const uint32_t x = builder_.F32({8});
  Scale(builder_.F32({8}), x);
  EXPECT_TRUE(Uses(0, x).outlives);
}

}  // namespace
}  // namespace trine::sdk
