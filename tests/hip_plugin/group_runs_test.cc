#include "backends/hip/group_runs.h"

#include <algorithm>

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

  // Returns the names of the runs, each with where it reads and writes quantised values.
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

// The ops before the attention of one token, and the attention.
class AttendedTest : public GroupRunsTest {
 protected:
  static constexpr int64_t kHeads = 4, kHead = 64;

  AttendedTest() {
    q_ = Rows();
    k_ = Rows();
    v_ = Rows();
    rotated_q_ = Rows();
    rotated_k_ = Rows();
    y_ = Rows();
    table_ = builder_.Tensor(TRINE_DTYPE_F32, {kHead, m_}, TRINE_ROLE_IO);
    slots_ = builder_.Tensor(TRINE_DTYPE_I32, {m_}, TRINE_ROLE_IO);
    keys_ = Cache();
    values_ = Cache();
  }

  uint32_t Rows() { return builder_.Tensor(TRINE_DTYPE_F32, {kHead, kHeads, m_}, TRINE_ROLE_TEMP); }
  uint32_t Cache() {
    return builder_.Tensor(TRINE_DTYPE_F16, {kHead, 16, kHeads, 8}, TRINE_ROLE_STATE);
  }
  void Before() {
    builder_.Op(TRINE_OP_ROPE, {q_, table_}, {rotated_q_}, trine_rope_attr{0, TRINE_ROPE_HALVES});
    builder_.Op(TRINE_OP_ROPE, {k_, table_}, {rotated_k_}, trine_rope_attr{0, TRINE_ROPE_HALVES});
    builder_.Op(TRINE_OP_KV_STORE, {rotated_k_, slots_}, {keys_});
    builder_.Op(TRINE_OP_KV_STORE, {v_, slots_}, {values_});
  }
  void Attention() {
    trine_attention_attr attr{};
    attr.scale = 0.125f;
    attr.flags = TRINE_ATTENTION_CAUSAL;
    builder_.Op(
        TRINE_OP_ATTENTION,
        {rotated_q_, keys_, values_, builder_.Tensor(TRINE_DTYPE_I32, {8, 1}),
         builder_.Tensor(TRINE_DTYPE_I32, {2}), builder_.Tensor(TRINE_DTYPE_I32, {1}), TRINE_NONE},
        {y_}, attr);
  }
  // Norms the rows before they are rotated.
  void Norms() {
    q_ = Normed(q_);
    k_ = Normed(k_);
  }
  uint32_t Normed(uint32_t x, int64_t head = kHead) {
    const uint32_t y = Rows();
    builder_.Op(TRINE_OP_RMS_NORM, {x, builder_.Tensor(TRINE_DTYPE_F32, {head})}, {y},
                trine_norm_attr{0, 1e-5f});
    return y;
  }
  bool Begins(const std::string& joined, int64_t tokens = 1) {
    const std::vector<std::string> runs = Runs(tokens);
    return std::any_of(runs.begin(), runs.end(),
                       [&](const std::string& name) { return name.rfind(joined, 0) == 0; });
  }
  bool IsJoined(int64_t tokens = 1) {
    return Begins("rope+rope+kv_store+kv_store+attention", tokens);
  }
  bool IsNormedAlong(int64_t tokens = 1) {
    return Begins("rms_norm+rms_norm+rope+rope+kv_store+kv_store+attention", tokens);
  }

  uint32_t q_, k_, v_, rotated_q_, rotated_k_, y_, table_, slots_, keys_, values_;
};

TEST_F(AttendedTest, OfOneToken) {
  Before();
  Attention();
  EXPECT_TRUE(IsJoined());
  EXPECT_FALSE(IsJoined(2));
}

TEST_F(AttendedTest, NotOfOtherKeys) {
  Before();
  keys_ = Cache();
  Attention();
  EXPECT_FALSE(IsJoined());
}

TEST_F(AttendedTest, NotOfOtherValues) {
  Before();
  values_ = Cache();
  Attention();
  EXPECT_FALSE(IsJoined());
}

TEST_F(AttendedTest, NotIfOthersReadARotatedRow) {
  Before();
  Attention();
  builder_.Op(TRINE_OP_ADD, {rotated_q_, rotated_q_}, {Rows()});
  EXPECT_FALSE(IsJoined());
}

TEST_F(AttendedTest, NotIfTheKeysAreReadElsewhere) {
  Before();
  Attention();
  builder_.Op(TRINE_OP_ADD, {rotated_k_, rotated_k_}, {Rows()});
  EXPECT_FALSE(IsJoined());
}

// Blocks would write what others still read.
TEST_F(AttendedTest, NotIntoTheRows) {
  Before();
  builder_.tensors[y_].slot = builder_.tensors[v_].slot;
  Attention();
  EXPECT_FALSE(IsJoined());
}

TEST_F(AttendedTest, WithNormsOfHeads) {
  Norms();
  Before();
  Attention();
  EXPECT_TRUE(IsNormedAlong());
  EXPECT_FALSE(IsNormedAlong(2));
  EXPECT_FALSE(IsJoined(2));
}

TEST_F(AttendedTest, NotWithOneNorm) {
  q_ = Normed(q_);
  Before();
  Attention();
  EXPECT_FALSE(IsNormedAlong());
  EXPECT_TRUE(IsJoined());
}

TEST_F(AttendedTest, NotWithNormsTheOtherWayRound) {
  k_ = Normed(k_);
  q_ = Normed(q_);
  Before();
  Attention();
  EXPECT_FALSE(IsNormedAlong());
  EXPECT_TRUE(IsJoined());
}

TEST_F(AttendedTest, NotWithNormsThatOthersRead) {
  Norms();
  Before();
  Attention();
  builder_.Op(TRINE_OP_ADD, {k_, k_}, {Rows()});
  EXPECT_FALSE(IsNormedAlong());
  EXPECT_TRUE(IsJoined());
}

TEST_F(AttendedTest, NotWithANormThatHasNoWeight) {
  Norms();
  Before();
  Attention();
  EXPECT_TRUE(IsNormedAlong());
  const uint32_t no_weight[] = {builder_.ops[1].in[0], TRINE_NONE};
  builder_.ops[1].in = no_weight;
  EXPECT_FALSE(IsNormedAlong());
}

TEST_F(AttendedTest, NotWithLayerNorms) {
  Norms();
  builder_.ops[0].kind = TRINE_OP_LAYER_NORM;
  const uint32_t in[] = {builder_.ops[0].in[0], builder_.ops[0].in[1], TRINE_NONE};
  builder_.ops[0].in = in;
  builder_.ops[0].n_in = 3;
  Before();
  Attention();
  EXPECT_FALSE(IsNormedAlong());
  EXPECT_TRUE(IsJoined());
}

// Blocks would write the result where others still read what is normed.
TEST_F(AttendedTest, NotIntoWhatIsNormed) {
  builder_.tensors[y_].slot = builder_.tensors[k_].slot;
  Norms();
  Before();
  Attention();
  EXPECT_FALSE(IsNormedAlong());
  EXPECT_TRUE(IsJoined());
}

}  // namespace
}  // namespace trine::hip
