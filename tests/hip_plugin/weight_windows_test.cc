#include "backends/hip/weight_windows.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/abi/graph_builder.h"

namespace trine::hip {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Piece = StagedTensor::Piece;

class HipWeightWindowsTest : public ::testing::Test {
 protected:
  uint32_t Weights(uint32_t dtype, std::vector<int64_t> dims) {
    return builder_.Tensor(dtype, std::move(dims), TRINE_ROLE_CONSTANT, 8 << 20);
  }
  WindowedGraph Window(ConstantPlace place, uint64_t bytes) {
    sdk::Graph graph;
    EXPECT_EQ(builder_.Refusal(&graph), "");
    WindowedGraph windowed =
        WindowWeights(graph, std::vector<ConstantPlace>(graph.slots.size(), place), bytes);
    EXPECT_EQ(sdk::internal::CheckStructure(windowed.graph), "") << "it is a graph like any other";
    return windowed;
  }
  static const trine_tensor& In(const WindowedGraph& w, size_t op, size_t i) {
    return w.graph.tensors[w.graph.ops[op].in[i]];
  }
  static const trine_tensor& Out(const WindowedGraph& w, size_t op) {
    return w.graph.tensors[w.graph.ops[op].out[0]];
  }
  static std::vector<Piece> Pieces(const WindowedGraph& w, size_t op, size_t i = 0) {
    const auto& staged = w.staged[w.graph.ops[op].in[i]];
    return staged.has_value() ? staged->pieces : std::vector<Piece>{};
  }

  sdk::GraphBuilder builder_;
};

TEST_F(HipWeightWindowsTest, WeightsOnTheDeviceAreLeftAlone) {
  const uint32_t w = Weights(TRINE_DTYPE_F32, {256, 1000});
  const uint32_t x = builder_.F32({256, 2}), y = builder_.F32({1000, 2});
  builder_.Op(TRINE_OP_MATMUL, {w, x}, {y});
  const WindowedGraph windowed = Window(ConstantPlace::kDevice, 1 << 10);
  EXPECT_FALSE(windowed.any());
  EXPECT_EQ(windowed.graph.ops.size(), 1u);
}

TEST_F(HipWeightWindowsTest, AProductIsCutIntoEvenWindowsOfWholeTiles) {
  const int64_t m = builder_.Param(1, 8);
  const uint32_t w = Weights(TRINE_DTYPE_F32, {256, 1000});
  const uint32_t x = builder_.F32({256, m}), y = builder_.F32({1000, m});
  const uint32_t bias = Weights(TRINE_DTYPE_F32, {1000});
  builder_.Op(TRINE_OP_MATMUL, {w, x, bias}, {y});
  const WindowedGraph windowed = Window(ConstantPlace::kPinned, 400 << 10);  // 400 rows
  ASSERT_EQ(windowed.graph.ops.size(), 3u);
  const int64_t rows[] = {384, 384, 232};
  uint64_t first = 0;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(In(windowed, i, 0).dims[1], rows[i]);
    EXPECT_THAT(Pieces(windowed, i),
                ElementsAre(Piece{first * 1024, static_cast<uint64_t>(rows[i]) * 1024}));
    EXPECT_EQ(In(windowed, i, 1).slot, builder_.tensors[x].slot);
    EXPECT_EQ(In(windowed, i, 2).offset, first * 4);
    EXPECT_THAT(Pieces(windowed, i, 2), IsEmpty()) << "pinned vectors are read in place";
    EXPECT_EQ(Out(windowed, i).dims[0], rows[i]);
    EXPECT_EQ(Out(windowed, i).offset, first * 4);
    EXPECT_EQ(Out(windowed, i).strides[1], 4000) << "rows of the whole";
    first += static_cast<uint64_t>(rows[i]);
  }
  EXPECT_EQ(windowed.StageBytes(backends::GroupOps(windowed.graph, true)), 384u << 10);
}

TEST_F(HipWeightWindowsTest, ExpertsAreCutByRowsOfAll) {
  const uint32_t w = Weights(TRINE_DTYPE_Q8_0, {64, 10, 3});  // rows of 68 bytes
  const uint32_t x = builder_.F32({64, 1, 4}), ids = builder_.I32({2, 4});
  const uint32_t y = builder_.F32({10, 2, 4});
  builder_.Op(TRINE_OP_MOE_MATMUL, {w, x, ids}, {y});
  const WindowedGraph windowed = Window(ConstantPlace::kPageable, 1300);  // six rows of three
  ASSERT_EQ(windowed.graph.ops.size(), 2u);
  EXPECT_EQ(In(windowed, 0, 0).dims[1], 6);
  EXPECT_THAT(Pieces(windowed, 0),
              ElementsAre(Piece{0, 6 * 68}, Piece{680, 6 * 68}, Piece{1360, 6 * 68}));
  EXPECT_EQ(In(windowed, 1, 0).dims[1], 4);
  EXPECT_THAT(Pieces(windowed, 1),
              ElementsAre(Piece{408, 4 * 68}, Piece{1088, 4 * 68}, Piece{1768, 4 * 68}));
  EXPECT_EQ(Out(windowed, 1).offset, 24u);
  EXPECT_EQ(Out(windowed, 1).strides[1], 40);
  EXPECT_EQ(Out(windowed, 1).strides[2], 80);
}

TEST_F(HipWeightWindowsTest, RowsWithGapsKeepThem) {
  const uint32_t w = Weights(TRINE_DTYPE_F32, {256, 40});
  builder_.tensors[w].strides[1] = 2048;
  builder_.tensors[w].offset = 64;
  const uint32_t x = builder_.F32({256}), y = builder_.F32({40});
  builder_.Op(TRINE_OP_MATMUL, {w, x}, {y});
  const WindowedGraph windowed = Window(ConstantPlace::kPinned, 30 * 2048);
  ASSERT_EQ(windowed.graph.ops.size(), 2u);
  EXPECT_THAT(Pieces(windowed, 0), ElementsAre(Piece{64, 29 * 2048 + 1024}));
  EXPECT_THAT(Pieces(windowed, 1), ElementsAre(Piece{64 + 30 * 2048, 9 * 2048 + 1024}));
}

TEST_F(HipWeightWindowsTest, WhatKernelsCantSeeIsStagedWhateverItIs) {
  const uint32_t norm = Weights(TRINE_DTYPE_F32, {64}), small = Weights(TRINE_DTYPE_F32, {64, 8});
  const uint32_t x = builder_.F32({64, 2}), n = builder_.F32({64, 2}), y = builder_.F32({8, 2});
  builder_.Op(TRINE_OP_RMS_NORM, {x, norm}, {n}, trine_norm_attr{0, 1e-5f});
  builder_.Op(TRINE_OP_MATMUL, {small, n}, {y});
  EXPECT_FALSE(Window(ConstantPlace::kPinned, 1 << 20).any());
  const WindowedGraph windowed = Window(ConstantPlace::kPageable, 1 << 20);
  EXPECT_THAT(Pieces(windowed, 0, 1), ElementsAre(Piece{0, 256}));
  EXPECT_THAT(Pieces(windowed, 1), ElementsAre(Piece{0, 2048}));
  EXPECT_EQ(windowed.graph.ops.size(), 2u);
}

}  // namespace
}  // namespace trine::hip
