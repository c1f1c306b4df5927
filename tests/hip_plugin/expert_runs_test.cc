// Tests which groups with experts become one launch.
#include "backends/hip/op_launches.h"
#include "gmock/gmock.h"
#include "kernels/hip/weights/quantized.h"
#include "tests/hip_plugin/group_runs_fixture.h"

namespace trine::hip {
namespace {

using ::testing::ElementsAre;

// Products with experts, four of which a token uses.
class ExpertRunsTest : public GroupRunsTest {
 protected:
  static constexpr int64_t kUsed = 4, kExperts = 6;

  uint32_t Each() {
    return builder_.Tensor(TRINE_DTYPE_F32, {kWidth, kUsed, m_}, TRINE_ROLE_TEMP, 4 << 20);
  }
  uint32_t One() {
    return builder_.Tensor(TRINE_DTYPE_F32, {kWidth, 1, m_}, TRINE_ROLE_TEMP, 4 << 20);
  }
  uint32_t Ids() { return builder_.Tensor(TRINE_DTYPE_I32, {kUsed, m_}, TRINE_ROLE_TEMP); }
  uint32_t Experts(int64_t experts = kExperts, uint32_t dtype = TRINE_DTYPE_Q8_0) {
    const uint32_t w = builder_.Tensor(dtype, {kWidth, kWidth, experts}, TRINE_ROLE_CONSTANT);
    builder_.tensors[w].layout = 1;
    return w;
  }
  uint32_t Biases() {
    return builder_.Tensor(TRINE_DTYPE_F32, {kWidth, kExperts}, TRINE_ROLE_CONSTANT);
  }
  uint32_t Product(uint32_t weights, uint32_t x, uint32_t ids, uint32_t bias = TRINE_NONE) {
    const uint32_t y = Each();
    builder_.Op(TRINE_OP_MOE_MATMUL, {weights, x, ids, bias}, {y});
    return y;
  }
  uint32_t Product(uint32_t x, uint32_t ids) { return Product(Experts(), x, ids); }
  uint32_t Weights() { return builder_.Tensor(TRINE_DTYPE_F32, {kUsed, m_}, TRINE_ROLE_TEMP); }
  uint32_t Combined(uint32_t each, uint32_t weights) {
    const uint32_t y = Temp();
    builder_.Op(TRINE_OP_MOE_COMBINE, {each, weights}, {y});
    return y;
  }
  uint32_t Glu(uint32_t gate, uint32_t up) {
    const uint32_t y = Each();
    builder_.Op(TRINE_OP_GLU, {gate, up}, {y}, trine_glu_attr{0, TRINE_ACT_SILU, 0, 0});
    return y;
  }
};

TEST_F(ExpertRunsTest, AGluOfTwo) {
  const uint32_t x = One(), ids = Ids(), gate = Product(x, ids), up = Product(x, ids);
  Product(Glu(gate, up), ids);
  const std::vector<std::string> joined = {"moe_matmul q8_0+moe_matmul q8_0+glu+quantize 01",
                                           "moe_matmul q8_0 11"};
  EXPECT_EQ(Runs(), joined);
  EXPECT_EQ(Runs(8), joined);  // 32 columns
  EXPECT_THAT(Runs(9), ElementsAre("moe_matmul q8_0 00", "moe_matmul q8_0 00", "glu+quantize 00",
                                   "moe_matmul q8_0 00"));
}

// A product without experts reads what the glu has quantised. It has more columns than a gemv of
// its own kind takes, and all of them must fit in the second place.
TEST_F(ExpertRunsTest, AGluThatAProductWithoutExpertsReads) {
  constexpr int64_t kMany = 16, kInner = 4096;
  const auto temp = [&](std::vector<int64_t> dims) {
    return builder_.Tensor(TRINE_DTYPE_F32, std::move(dims), TRINE_ROLE_TEMP);
  };
  const auto weights = [&](std::vector<int64_t> dims) {
    const uint32_t w = builder_.Tensor(TRINE_DTYPE_Q8_0, std::move(dims), TRINE_ROLE_CONSTANT);
    builder_.tensors[w].layout = 1;
    return w;
  };
  const uint32_t x = temp({64, 1, 1});
  const uint32_t ids = builder_.Tensor(TRINE_DTYPE_I32, {kMany, 1}, TRINE_ROLE_TEMP);
  const uint32_t gate = temp({kInner, kMany, 1}), up = temp({kInner, kMany, 1});
  for (const uint32_t y : {gate, up}) {
    builder_.Op(TRINE_OP_MOE_MATMUL, {weights({64, kInner, kExperts}), x, ids, TRINE_NONE}, {y});
  }
  const uint32_t glu = temp({kInner, kMany, 1}), columns = temp({kInner, kMany});
  builder_.Op(TRINE_OP_GLU, {gate, up}, {glu}, trine_glu_attr{0, TRINE_ACT_SILU, 0, 0});
  builder_.tensors[columns].slot = builder_.tensors[glu].slot;
  builder_.Op(TRINE_OP_MATMUL, {weights({kInner, 64}), columns}, {temp({64, kMany})});
  EXPECT_THAT(Runs(),
              ElementsAre("moe_matmul q8_0+moe_matmul q8_0+glu+quantize 01", "matmul q8_0 11"));
  sdk::Graph graph;
  ASSERT_EQ(builder_.Refusal(&graph), "");
  EXPECT_GE(ScratchOf({}, graph).second_bytes, QuantizedBytes(kInner / 32, kMany));
}

TEST_F(ExpertRunsTest, ACombinationAndAnAdd) {
  const uint32_t residual = Temp(), each = Each(), ids = Ids();
  Add(residual, Combined(Product(each, ids), Weights()), residual);
  GroupRunsTest::Product(Norm(residual));
  Combined(Product(each, ids), Weights());
  EXPECT_THAT(Runs(), ElementsAre("moe_matmul q8_0+moe_combine+add 00", "rms_norm+quantize 00",
                                  "matmul q8_0 00", "moe_matmul q8_0+moe_combine 00"));
  EXPECT_THAT(Runs(9),
              ElementsAre("moe_matmul q8_0 00", "moe_combine 00", "add+rms_norm+quantize 00",
                          "matmul q8_0 00", "moe_matmul q8_0 00", "moe_combine 00"));
}

TEST_F(ExpertRunsTest, ACombinationOfWhatOthersRead) {
  const uint32_t y = Product(Each(), Ids());
  Combined(y, Weights());
  Glu(y, y);
  EXPECT_THAT(Runs(), ElementsAre("moe_matmul q8_0 00", "moe_combine 00", "glu 00"));
}

TEST_F(ExpertRunsTest, ACombinationWithoutAKernel) {
  const uint32_t plain = Experts();
  builder_.tensors[plain].layout = 0;
  Combined(Product(plain, Each(), Ids()), Weights());
  EXPECT_THAT(Runs(), ElementsAre("moe_matmul q8_0 00", "moe_combine 00"));
}

// Blocks would write what others still read.
TEST_F(ExpertRunsTest, ACombinationIntoItsOperands) {
  const uint32_t each = Each(), ids = Ids(), weights = Weights();
  const uint32_t a = Combined(Product(each, ids), weights);
  builder_.tensors[a].slot = builder_.tensors[weights].slot;
  const uint32_t b = Combined(Product(each, ids), Weights());
  builder_.tensors[b].slot = builder_.tensors[ids].slot;
  EXPECT_THAT(Runs(), ElementsAre("moe_matmul q8_0 00", "moe_combine 00", "moe_matmul q8_0 00",
                                  "moe_combine 00"));
}

// The sum would lie where the weights are.
TEST_F(ExpertRunsTest, AnAddIntoTheWeights) {
  const uint32_t weights = Weights(), y = Combined(Product(Each(), Ids()), weights), sum = Temp();
  builder_.tensors[sum].slot = builder_.tensors[weights].slot;
  Add(y, Temp(), sum);
  EXPECT_THAT(Runs(), ElementsAre("moe_matmul q8_0+moe_combine 00", "add 00"));
}

TEST_F(ExpertRunsTest, AnAddToEachExpertsResult) {
  const uint32_t sum = Each();
  Add(Product(Each(), Ids()), Each(), sum);
  Combined(sum, Weights());
  EXPECT_THAT(Runs(), ElementsAre("moe_matmul q8_0+add 00", "nothing 00", "moe_combine 00"));
}

TEST_F(ExpertRunsTest, ANormBeforeThemIsALaunch) {
  const uint32_t ids = Ids(), x = One(), y = One();
  builder_.Op(TRINE_OP_RMS_NORM, {x, builder_.Tensor(TRINE_DTYPE_F32, {kWidth})}, {y},
              trine_norm_attr{0, 1e-5f});
  const uint32_t gate = Product(y, ids), up = Product(y, ids);
  Product(Glu(gate, up), ids);
  EXPECT_THAT(Runs(),
              ElementsAre("rms_norm+quantize 00", "moe_matmul q8_0+moe_matmul q8_0+glu+quantize 01",
                          "moe_matmul q8_0 11"));
}

TEST_F(ExpertRunsTest, WithOtherExpertsTheyAreApart) {
  const uint32_t x = One(), ids = Ids();
  Product(x, ids);
  Product(x, Ids());
  Product(Experts(kExperts + 1), x, ids);
  Product(Experts(), x, ids, Biases());
  Product(Experts(), x, ids);
  Product(Experts(kExperts, TRINE_DTYPE_Q4_K), x, ids);
  Product(Experts(kExperts, TRINE_DTYPE_Q4_K), x, ids);
  EXPECT_THAT(Runs(), ElementsAre("moe_matmul q8_0 00", "moe_matmul q8_0 00", "moe_matmul q8_0 00",
                                  "moe_matmul q8_0 00", "moe_matmul q8_0 00",
                                  "moe_matmul q4_K+moe_matmul q4_K 00"));
}

TEST_F(ExpertRunsTest, BiasesAreInOnePlace) {
  const uint32_t x = One(), ids = Ids(), far = Biases();
  builder_.tensors[far].strides[1] = 8 * kWidth;
  Product(Experts(), x, ids, Biases());
  Product(Experts(), x, ids, Biases());
  Product(Experts(), x, ids, far);
  EXPECT_THAT(Runs(), ElementsAre("moe_matmul q8_0+moe_matmul q8_0 00", "moe_matmul q8_0 00"));
}

TEST_F(ExpertRunsTest, ProductsWithAndWithoutExpertsAreApart) {
  const uint32_t x = One(), ids = Ids();
  GroupRunsTest::Product(x, One());
  Product(x, ids);
  EXPECT_THAT(Runs(), ElementsAre("matmul q8_0 00", "moe_matmul q8_0 00"));
}

// A route and what follows it, with a norm before them, which quantises x.
class RouteRunsTest : public ExpertRunsTest {
 protected:
  RouteRunsTest() {
    builder_.Op(TRINE_OP_RMS_NORM, {One(), builder_.Tensor(TRINE_DTYPE_F32, {kWidth})}, {x_},
                trine_norm_attr{0, 1e-5f});
  }
  uint32_t Logits(int64_t experts = kExperts) {
    return builder_.Tensor(TRINE_DTYPE_F32, {experts, m_}, TRINE_ROLE_TEMP);
  }
  void Route(uint32_t logits, uint32_t ids, uint32_t weights) {
    builder_.Op(TRINE_OP_MOE_ROUTE, {logits, TRINE_NONE}, {ids, weights},
                trine_moe_route_attr{0, TRINE_MOE_SOFTMAX, 0, 1});
  }
  void ProductsAndGlu(uint32_t ids) {
    const uint32_t gate = Product(x_, ids), up = Product(x_, ids);
    Product(Glu(gate, up), ids);
  }
  // Returns the names of the runs behind the norm.
  std::vector<std::string> Rest(int64_t columns = 1) {
    std::vector<std::string> runs = Runs(columns);
    EXPECT_EQ(runs.front(), "rms_norm+quantize 00");
    runs.erase(runs.begin());
    return runs;
  }

  const uint32_t x_ = One();
};

TEST_F(RouteRunsTest, ARouteBeforeAGlu) {
  const uint32_t ids = Ids();
  Route(Logits(), ids, Weights());
  ProductsAndGlu(ids);
  EXPECT_THAT(Rest(), ElementsAre("moe_route+moe_matmul q8_0+moe_matmul q8_0+glu+quantize 01",
                                  "moe_matmul q8_0 11"));
  EXPECT_EQ(Rest(9)[0], "moe_route 00");
}

TEST_F(RouteRunsTest, ARouteThatStaysApart) {
  const std::string apart = "moe_route 00";
  const uint32_t others = Ids();
  Route(Logits(), Ids(), Weights());  // of other ids
  ProductsAndGlu(others);
  EXPECT_EQ(Rest()[0], apart);
}

TEST_F(RouteRunsTest, ARouteAmongManyExperts) {
  const uint32_t ids = Ids();
  Route(Logits(129), ids, Weights());
  ProductsAndGlu(ids);
  EXPECT_EQ(Rest()[0], "moe_route 00");
}

// The launch does not check ids.
TEST_F(RouteRunsTest, ARouteAmongMoreExpertsThanTheWeightsHave) {
  const uint32_t ids = Ids();
  Route(Logits(kExperts + 1), ids, Weights());
  ProductsAndGlu(ids);
  EXPECT_EQ(Rest()[0], "moe_route 00");
}

TEST_F(RouteRunsTest, ARouteAmongFewerExpertsThanTheWeightsHave) {
  const uint32_t ids = Ids();
  Route(Logits(kExperts - 1), ids, Weights());
  ProductsAndGlu(ids);
  EXPECT_EQ(Rest()[0], "moe_route+moe_matmul q8_0+moe_matmul q8_0+glu+quantize 01");
}

// Blocks would write what others still read.
TEST_F(RouteRunsTest, ARouteIntoItsOperands) {
  const uint32_t ids = Ids(), logits = Logits(), weights = Weights();
  builder_.tensors[weights].slot = builder_.tensors[logits].slot;
  Route(logits, ids, weights);
  ProductsAndGlu(ids);
  EXPECT_EQ(Rest()[0], "moe_route 00");
}

// The place of quantised values is the first op's to write.
TEST_F(RouteRunsTest, ARouteBeforeXIsQuantized) {
  const uint32_t ids = Ids(), x = One();
  Route(Logits(), ids, Weights());
  const uint32_t gate = Product(x, ids), up = Product(x, ids);
  Product(Glu(gate, up), ids);
  EXPECT_EQ(Runs()[1], "moe_route 00");
  EXPECT_EQ(Runs()[2], "moe_matmul q8_0+moe_matmul q8_0+glu+quantize 01");
}

}  // namespace
}  // namespace trine::hip
