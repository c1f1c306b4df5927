#include "gmock/gmock.h"
#include "tests/hip_plugin/group_runs_fixture.h"

namespace trine::hip {
namespace {

using ::testing::ElementsAre;

TEST_F(GroupRunsTest, ProductsOfOneX) {
  const uint32_t x = Norm(Temp());
  Product(x);
  Product(x);
  Product(x);
  EXPECT_THAT(Runs(),
              ElementsAre("rms_norm+quantize 00", "matmul q8_0+matmul q8_0+matmul q8_0 00"));
  EXPECT_THAT(Runs(8),
              ElementsAre("rms_norm+quantize 00", "matmul q8_0+matmul q8_0+matmul q8_0 00"));
  // Products by tiles are not joined; with `join` off nothing is.
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
  Product(x, Temp(), TRINE_DTYPE_Q6_K, false);
  Product(x, Temp(), TRINE_DTYPE_Q5_1, false);
  Product(x, Temp(), TRINE_DTYPE_F16);
  Product(x, Temp(), TRINE_DTYPE_F16);
  EXPECT_THAT(Runs(), ElementsAre("matmul q8_0 00", "matmul q6_K 00", "matmul q5_1 00",
                                  "matmul f16+matmul f16 00"));
}

TEST_F(GroupRunsTest, PackedTypesOfOneColumn) {
  const uint32_t x = Temp();
  Product(x, Temp(), TRINE_DTYPE_Q4_K);
  Product(x);
  Product(x, Temp(), TRINE_DTYPE_Q6_K);
  EXPECT_THAT(Runs(), ElementsAre("matmul q4_K+matmul q8_0+matmul q6_K 00"));
  EXPECT_THAT(Runs(2), ElementsAre("matmul q4_K 00", "matmul q8_0 00", "matmul q6_K 00"));
}

TEST_F(GroupRunsTest, AGluOfTwoTypes) {
  const uint32_t x = Norm(Temp());
  const uint32_t gate = Product(x), up = Temp();
  Product(x, up, TRINE_DTYPE_Q6_K);
  Product(Glu(gate, up));
  EXPECT_THAT(Runs(), ElementsAre("rms_norm+quantize 00", "matmul q8_0+matmul q6_K 00",
                                  "glu+quantize 00", "matmul q8_0 00"));
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
  // With several columns too, but without the norm.
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

// A norm and the product of a router, whose weights are floats.
class RouterRunsTest : public GroupRunsTest {
 protected:
  uint32_t Router(uint32_t x, int64_t rows = 128, uint32_t dtype = TRINE_DTYPE_F32) {
    const uint32_t y = builder_.Tensor(TRINE_DTYPE_F32, {rows, m_}, TRINE_ROLE_TEMP, 4 << 20);
    builder_.Op(TRINE_OP_MATMUL, {builder_.Tensor(dtype, {kWidth, rows}, TRINE_ROLE_CONSTANT), x},
                {y});
    return y;
  }
  const std::string kJoined = "rms_norm+quantize+matmul f32 00", kNorm = "rms_norm+quantize 00",
                    kRouter = "matmul f32 00", kProduct = "matmul q8_0 00";
};

TEST_F(RouterRunsTest, OfOneColumn) {
  const uint32_t x = Norm(Temp());
  Router(x);
  Product(x);
  EXPECT_THAT(Runs(), ElementsAre(kJoined, kProduct));
  EXPECT_THAT(Runs(2), ElementsAre(kNorm, kRouter, kProduct));
}

TEST_F(RouterRunsTest, BehindAnAdd) {
  const uint32_t residual = Temp();
  Add(Product(Temp()), residual, residual);
  const uint32_t x = Norm(residual);
  Router(x);
  Product(x);
  EXPECT_THAT(Runs(), ElementsAre("matmul q8_0+add 00", kJoined, kProduct));
}

TEST_F(RouterRunsTest, NotOfAnotherX) {
  const uint32_t x = Norm(Temp());
  Router(Temp());
  Product(x);
  EXPECT_THAT(Runs(), ElementsAre(kNorm, kRouter, kProduct));
}

TEST_F(RouterRunsTest, NotOfManyRows) {
  const uint32_t x = Norm(Temp());
  Router(x, 1024);
  Product(x);
  EXPECT_THAT(Runs(), ElementsAre(kNorm, kRouter, kProduct));
}

TEST_F(RouterRunsTest, NotOfOtherWeights) {
  const uint32_t x = Norm(Temp());
  Router(x, 128, TRINE_DTYPE_F16);
  Product(x);
  EXPECT_THAT(Runs(), ElementsAre(kNorm, "matmul f16 00", kProduct));
}

TEST_F(RouterRunsTest, NotInPlace) {
  const uint32_t x = Temp(), y = Norm(x);
  builder_.tensors[y].slot = builder_.tensors[x].slot;
  Router(y);
  Product(y);
  EXPECT_THAT(Runs(), ElementsAre(kNorm, kRouter, kProduct));
}

TEST_F(RouterRunsTest, NotIntoWhatIsNormed) {
  const uint32_t x = Temp(), y = Norm(x), logits = Router(y);
  builder_.tensors[logits].slot = builder_.tensors[x].slot;
  Product(y);
  EXPECT_THAT(Runs(), ElementsAre(kNorm, kRouter, kProduct));
}

TEST_F(RouterRunsTest, NotWithAnAddOfItsOwn) {
  const uint32_t a = Temp(), sum = Temp();
  Add(a, a, sum);
  const uint32_t x = Norm(sum);
  Router(x);
  Product(x);
  EXPECT_THAT(Runs(), ElementsAre("add+rms_norm+quantize 00", kRouter, kProduct));
}

}  // namespace
}  // namespace trine::hip
