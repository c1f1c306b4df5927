#include "backends/hip/group_runs.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/abi/graph_builder.h"

namespace trine::hip {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kWidth = 256;

class GroupRunsTest : public ::testing::Test {
 protected:
  uint32_t Temp() { return builder_.Tensor(TRINE_DTYPE_F32, {kWidth, m_}, TRINE_ROLE_TEMP); }
  uint32_t Weights(uint32_t dtype, bool packed) {
    const uint32_t w = builder_.Tensor(dtype, {kWidth, kWidth}, TRINE_ROLE_CONSTANT);
    if (packed) builder_.tensors[w].layout = 1;
    return w;
  }
  uint32_t Norm(uint32_t x) {
    const uint32_t y = Temp();
    builder_.Op(TRINE_OP_RMS_NORM, {x, builder_.Tensor(TRINE_DTYPE_F32, {kWidth})}, {y},
                trine_norm_attr{0, 1e-5f});
    return y;
  }
  void Product(uint32_t x, uint32_t y, uint32_t dtype = TRINE_DTYPE_Q8_0, bool packed = true) {
    builder_.Op(TRINE_OP_MATMUL, {Weights(dtype, packed), x}, {y});
  }
  uint32_t Product(uint32_t x) {
    const uint32_t y = Temp();
    Product(x, y);
    return y;
  }
  uint32_t Glu(uint32_t gate, uint32_t up) {
    const uint32_t y = Temp();
    builder_.Op(TRINE_OP_GLU, {gate, up}, {y}, trine_glu_attr{0, TRINE_ACT_SILU, 0, 0});
    return y;
  }

  void Add(uint32_t a, uint32_t b, uint32_t sum) { builder_.Op(TRINE_OP_ADD, {a, b}, {sum}); }

  // Names of the runs, each with where it finds and where it puts what is quantised.
  std::vector<std::string> Runs(int64_t columns = 1, bool join = true) {
    sdk::Graph graph;
    EXPECT_EQ(builder_.Refusal(&graph), "");
    const std::vector<OpGroup> groups = backends::GroupOps(graph, join);
    std::vector<std::string> names;
    uint32_t next = 0;
    for (const GroupRun& run : JoinGroups(graph, groups, &columns, join)) {
      EXPECT_EQ(run.first, next);  // all groups, each once, in order
      next += run.count;
      names.push_back(RunName(graph, groups, run) + std::string(" ") + std::to_string(run.from) +
                      std::to_string(run.to));
    }
    EXPECT_EQ(next, groups.size());
    return names;
  }

  sdk::GraphBuilder builder_;
  const int64_t m_ = builder_.Param(1, 512);
};

TEST_F(GroupRunsTest, ProductsOfOneX) {
  const uint32_t x = Norm(Temp());
  Product(x);
  Product(x);
  Product(x);
  EXPECT_THAT(Runs(),
              ElementsAre("rms_norm+quantize 00", "matmul q8_0+matmul q8_0+matmul q8_0 00"));
  EXPECT_THAT(Runs(8),
              ElementsAre("rms_norm+quantize 00", "matmul q8_0+matmul q8_0+matmul q8_0 00"));
  // Tiles' are by themselves, and so is everything without joining.
  EXPECT_THAT(Runs(9), ElementsAre("rms_norm+quantize 00", "matmul q8_0 00", "matmul q8_0 00",
                                   "matmul q8_0 00"));
  EXPECT_THAT(Runs(1, false),
              ElementsAre("rms_norm 00", "matmul q8_0 00", "matmul q8_0 00", "matmul q8_0 00"));
}

TEST_F(GroupRunsTest, NoMoreThanALaunchTakes) {
  const uint32_t x = Temp();
  for (int i = 0; i < 5; ++i) Product(x);
  EXPECT_THAT(Runs(),
              ElementsAre("matmul q8_0+matmul q8_0+matmul q8_0+matmul q8_0 00", "matmul q8_0 00"));
}

TEST_F(GroupRunsTest, OtherWeightsAreApart) {
  const uint32_t x = Temp();
  Product(x);
  Product(x, Temp(), TRINE_DTYPE_Q6_K);
  Product(x, Temp(), TRINE_DTYPE_Q6_K, false);
  Product(x, Temp(), TRINE_DTYPE_F16);
  Product(x, Temp(), TRINE_DTYPE_F16);
  EXPECT_THAT(Runs(), ElementsAre("matmul q8_0 00", "matmul q6_K 00", "matmul q6_K 00",
                                  "matmul f16+matmul f16 00"));
}

TEST_F(GroupRunsTest, AnotherXIsApart) {
  const uint32_t x = Temp(), other = Temp();
  Product(x);
  Product(other);
  EXPECT_THAT(Runs(), ElementsAre("matmul q8_0 00", "matmul q8_0 00"));
}

TEST_F(GroupRunsTest, WhatIsWrittenIsNotReadByOthers) {
  const uint32_t x = Temp(), y = Temp();
  Product(x, y, TRINE_DTYPE_F16);
  Product(x, y, TRINE_DTYPE_F16);  // the same place
  Product(x, x, TRINE_DTYPE_F16);  // what others read
  Product(x, Temp(), TRINE_DTYPE_F16);
  const uint32_t bias = builder_.Tensor(TRINE_DTYPE_F32, {kWidth}, TRINE_ROLE_TEMP);
  builder_.tensors[bias].slot = builder_.tensors[y].slot;
  Product(x, y, TRINE_DTYPE_F16);
  builder_.Op(TRINE_OP_MATMUL, {Weights(TRINE_DTYPE_F16, true), x, bias}, {Temp()});
  EXPECT_THAT(Runs(), ElementsAre("matmul f16 00", "matmul f16 00", "matmul f16 00",
                                  "matmul f16+matmul f16 00", "matmul f16 00"));
}

TEST_F(GroupRunsTest, AGluOfTwo) {
  for (int layer = 0; layer < 2; ++layer) {
    const uint32_t x = Norm(Temp());
    const uint32_t gate = Product(x), up = Product(x);
    Product(Glu(gate, up));
  }
  const auto layer = {"rms_norm+quantize+matmul q8_0+matmul q8_0+glu+quantize 01",
                      "matmul q8_0 11"};
  std::vector<std::string> both(layer.begin(), layer.end());
  both.insert(both.end(), layer.begin(), layer.end());
  EXPECT_EQ(Runs(), both);
}

TEST_F(GroupRunsTest, AGluWhoseInputsOthersRead) {
  const uint32_t x = Norm(Temp());
  const uint32_t gate = Product(x), up = Product(x);
  Product(Glu(gate, up));
  Norm(up);
  EXPECT_THAT(Runs(), ElementsAre("rms_norm+quantize 00", "matmul q8_0+matmul q8_0 00",
                                  "glu+quantize 00", "matmul q8_0 00", "rms_norm 00"));
}

TEST_F(GroupRunsTest, AGluThatOthersRead) {
  const uint32_t x = Norm(Temp());
  const uint32_t gate = Product(x), up = Product(x), y = Glu(gate, up);
  Product(y);
  Norm(y);
  EXPECT_THAT(Runs(), ElementsAre("rms_norm+quantize 00", "matmul q8_0+matmul q8_0 00",
                                  "glu+quantize 00", "matmul q8_0 00", "rms_norm 00"));
}

TEST_F(GroupRunsTest, AGluTheOtherWayRound) {
  const uint32_t x = Norm(Temp());
  const uint32_t up = Product(x), gate = Product(x);
  Product(Glu(gate, up));
  EXPECT_THAT(Runs(), ElementsAre("rms_norm+quantize 00", "matmul q8_0+matmul q8_0 00",
                                  "glu+quantize 00", "matmul q8_0 00"));
}

TEST_F(GroupRunsTest, OfSeveralColumnsANormIsALaunch) {
  const uint32_t x = Norm(Temp());
  const uint32_t gate = Product(x), up = Product(x);
  Product(Glu(gate, up));
  EXPECT_THAT(Runs(2), ElementsAre("rms_norm+quantize 00",
                                   "matmul q8_0+matmul q8_0+glu+quantize 01", "matmul q8_0 11"));
}

TEST_F(GroupRunsTest, ANormThatOthersRead) {
  const uint32_t x = Norm(Temp());
  const uint32_t gate = Product(x), up = Product(x);
  Product(Glu(gate, up));
  Glu(x, x);
  EXPECT_THAT(Runs(), ElementsAre("rms_norm+quantize 00", "matmul q8_0+matmul q8_0+glu+quantize 01",
                                  "matmul q8_0 11", "glu 11"));
}

TEST_F(GroupRunsTest, AnAddIsThePreviousProducts) {
  const uint32_t residual = Temp(), other = Temp();
  Add(Product(Temp()), residual, residual);
  const uint32_t x = Norm(residual), gate = Product(x), up = Product(x);
  Add(residual, Product(Glu(gate, up)), other);  // with no norm behind it
  Glu(other, other);
  EXPECT_THAT(Runs(), ElementsAre("matmul q8_0+add 00",
                                  "rms_norm+quantize+matmul q8_0+matmul q8_0+glu+quantize 01",
                                  "matmul q8_0+add 11", "nothing 11", "glu 11"));
  // Of several columns, too, but the norm is apart.
  EXPECT_THAT(Runs(8), ElementsAre("matmul q8_0+add 00", "rms_norm+quantize 00",
                                   "matmul q8_0+matmul q8_0+glu+quantize 01", "matmul q8_0+add 11",
                                   "nothing 11", "glu 11"));
  EXPECT_THAT(Runs(9), ElementsAre("matmul q8_0 00", "add+rms_norm+quantize 00", "matmul q8_0 00",
                                   "matmul q8_0 00", "glu+quantize 00", "matmul q8_0 00", "add 00",
                                   "glu 00"));
}

TEST_F(GroupRunsTest, AddsThatStayApart) {
  const uint32_t residual = Temp(), y = Product(Temp()), z = Product(Temp());
  Add(y, residual, residual);  // not what is behind z
  Glu(y, y);
  const uint32_t twice = Product(Temp());
  Add(twice, twice, residual);
  const uint32_t x = Temp(), floats = Temp();
  Product(x, floats, TRINE_DTYPE_F16);
  Add(floats, residual, x);  // the sum is where the product's x is
  Glu(z, z);
  EXPECT_THAT(Runs(), ElementsAre("matmul q8_0 00", "matmul q8_0 00", "add 00", "glu 00",
                                  "matmul q8_0 00", "add 00", "matmul f16 00", "add 00", "glu 00"));
}

}  // namespace
}  // namespace trine::hip
