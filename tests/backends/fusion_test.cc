#include "backends/common/fusion.h"

#include "backends/common/op_attributes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/abi/graph_builder.h"

namespace trine::backends {
namespace {

using ::testing::ElementsAre;

class FusionTest : public ::testing::Test {
 protected:
  uint32_t Temp(std::vector<int64_t> dims) {
    return builder_.Tensor(TRINE_DTYPE_F32, std::move(dims), TRINE_ROLE_TEMP);
  }
  uint32_t Weights(uint32_t dtype, std::vector<int64_t> dims) {
    return builder_.Tensor(dtype, std::move(dims), TRINE_ROLE_CONSTANT);
  }
  // The same memory in another shape.
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

  void Norm(uint32_t x, uint32_t y) {
    builder_.Op(TRINE_OP_RMS_NORM, {x, Weights(TRINE_DTYPE_F32, {kWidth})}, {y},
                trine_norm_attr{0, 1e-5f});
  }
  void Add(uint32_t a, uint32_t b, uint32_t y) { builder_.Op(TRINE_OP_ADD, {a, b}, {y}); }
  void Glu(uint32_t gate, uint32_t up, uint32_t y) {
    builder_.Op(TRINE_OP_GLU, {gate, up}, {y}, trine_glu_attr{0, TRINE_ACT_SILU, 0, 0});
  }
  void Matmul(uint32_t dtype, uint32_t x, uint32_t y) {
    builder_.Op(TRINE_OP_MATMUL, {Weights(dtype, {kWidth, kWidth}), x}, {y});
  }
  void Product(uint32_t x) { Matmul(TRINE_DTYPE_Q8_0, x, Temp({kWidth, m_})); }
  void Rope(uint32_t x, uint32_t y, uint32_t table) {
    builder_.Op(TRINE_OP_ROPE, {x, table}, {y}, trine_rope_attr{0, TRINE_ROPE_HALVES});
  }
  void Store(uint32_t x, uint32_t slots, uint32_t cache) {
    builder_.Op(TRINE_OP_KV_STORE, {x, slots}, {cache});
  }
  uint32_t Cache(uint32_t dtype = TRINE_DTYPE_F16) {
    return builder_.Tensor(dtype, {64, 64, 2, 4}, TRINE_ROLE_STATE);
  }

  std::vector<OpGroup> Groups(bool fuse = true) {
    graph_ = {};
    EXPECT_EQ(builder_.Refusal(&graph_), "");
    for (size_t i = 0; i < graph_.ops.size(); ++i) EXPECT_EQ(sdk::CheckOp(graph_, i), "") << i;
    std::vector<OpGroup> groups = GroupOps(graph_, fuse);
    uint32_t next = 0;  // all ops, each once, in order
    for (const OpGroup& group : groups) {
      EXPECT_EQ(group.first, next);
      next += group.count;
    }
    EXPECT_EQ(next, graph_.ops.size());
    return groups;
  }
  // Returns the names of the groups; '!' where a quantised value is also written, '?' before a
  // product that quantises by itself.
  std::vector<std::string> Names(bool fuse = true) {
    std::vector<std::string> names;
    for (const OpGroup& group : Groups(fuse)) {
      std::string name = GroupName(graph_, group);
      const bool product = IsQuantizedProduct(graph_, graph_.ops[group.first]);
      if (product && group.quantizes) name = "?" + name;
      if (!product && group.quantizes && group.writes) name += "!";
      if (group.kind == OpGroup::Kind::kRotateStore && group.writes) name += "!";
      names.push_back(name);
    }
    return names;
  }

  static constexpr int64_t kWidth = 64;
  sdk::GraphBuilder builder_;
  const int64_t m_ = builder_.Param(1, 16);
  sdk::Graph graph_;
};

TEST_F(FusionTest, SumNormAndQuantisationAreOne) {
  const uint32_t a = Temp({kWidth, m_}), b = Temp({kWidth, m_}), sum = Temp({kWidth, m_});
  const uint32_t y = Temp({kWidth, m_});
  Add(a, b, sum);
  Norm(sum, y);
  Product(y);
  Product(y);
  Add(sum, sum, sum);
  EXPECT_THAT(Names(), ElementsAre("add+rms_norm+quantize", "matmul q8_0", "matmul q8_0", "add"));
  EXPECT_THAT(Names(false), ElementsAre("add", "rms_norm", "?matmul q8_0", "matmul q8_0", "add"));
}

TEST_F(FusionTest, WhatElseIsReadIsWritten) {
  const uint32_t x = Temp({kWidth, m_}), y = Temp({kWidth, m_});
  Norm(x, y);
  Product(y);
  Matmul(TRINE_DTYPE_F32, y, x);
  EXPECT_THAT(Names(), ElementsAre("rms_norm+quantize!", "matmul q8_0", "matmul f32"));
}

TEST_F(FusionTest, WhatTheHostReadsIsWritten) {
  const uint32_t x = Temp({kWidth, m_}), y = builder_.F32({kWidth, m_});
  Norm(x, y);
  Product(y);
  EXPECT_THAT(Names(), ElementsAre("rms_norm+quantize!", "matmul q8_0"));
}

TEST_F(FusionTest, WithoutAProductOfQuantisedWeightsNothingIsQuantised) {
  const uint32_t x = Temp({kWidth, m_}), y = Temp({kWidth, m_});
  Norm(x, y);
  Matmul(TRINE_DTYPE_F16, y, x);
  Glu(x, x, y);
  Matmul(TRINE_DTYPE_F16, y, x);
  EXPECT_THAT(Names(), ElementsAre("rms_norm", "matmul f16", "glu", "matmul f16"));
}

TEST_F(FusionTest, OtherActivationsBetweenMeanFloatsToQuantiseAnew) {
  const uint32_t x = Temp({kWidth, m_}), y = Temp({kWidth, m_}), other = Temp({kWidth, m_});
  Norm(x, y);
  Product(y);
  Product(other);
  Product(y);
  EXPECT_THAT(Names(),
              ElementsAre("rms_norm+quantize!", "matmul q8_0", "?matmul q8_0", "?matmul q8_0"));
}

// Like a shared expert, which reads the norm after other experts' activations were quantised.
TEST_F(FusionTest, OtherOpsThatQuantiseBetweenMeanFloatsToQuantiseAnew) {
  const uint32_t x = Temp({kWidth, m_}), y = Temp({kWidth, m_}), g = Temp({kWidth, m_});
  Norm(x, y);
  Product(y);
  Glu(x, x, g);
  Product(g);
  Product(y);
  EXPECT_THAT(Names(), ElementsAre("rms_norm+quantize!", "matmul q8_0", "glu+quantize",
                                   "matmul q8_0", "?matmul q8_0"));
}

TEST_F(FusionTest, ListsOfExpertsEndWhatWasQuantised) {
  const uint32_t x = Temp({kWidth, m_}), y = Temp({kWidth, m_}), ids = builder_.I32({2, m_});
  Norm(x, y);
  Product(y);
  const uint32_t each = Over(y, {kWidth, 1, m_});
  builder_.Op(TRINE_OP_MOE_MATMUL, {Weights(TRINE_DTYPE_F16, {kWidth, 8, 4}), each, ids},
              {Temp({8, 2, m_})});
  Product(y);
  EXPECT_THAT(Names(),
              ElementsAre("rms_norm+quantize!", "matmul q8_0", "moe_matmul f16", "?matmul q8_0"));
}

TEST_F(FusionTest, ExpertsFindTheSameColumns) {
  const uint32_t x = Temp({kWidth, m_}), y = Temp({kWidth, m_}), ids = builder_.I32({2, m_});
  Norm(x, y);
  const uint32_t each = Over(y, {kWidth, 1, m_});
  for (int i = 0; i < 2; ++i) {
    builder_.Op(TRINE_OP_MOE_MATMUL, {Weights(TRINE_DTYPE_Q8_0, {kWidth, 8, 4}), each, ids},
                {Temp({8, 2, m_})});
  }
  Product(y);
  EXPECT_THAT(Names(), ElementsAre("rms_norm+quantize", "moe_matmul q8_0", "moe_matmul q8_0",
                                   "matmul q8_0"));
}

TEST_F(FusionTest, OtherColumnsOfTheSameMemoryAreOthers) {
  const uint32_t x = Temp({kWidth, 2, m_}), y = Temp({kWidth, 2, m_});
  Norm(x, y);  // of heads
  builder_.Op(TRINE_OP_MATMUL, {Weights(TRINE_DTYPE_Q8_0, {2 * kWidth, 8}), Over(y, {128, m_})},
              {Temp({8, m_})});
  EXPECT_THAT(Names(), ElementsAre("rms_norm", "?matmul q8_0"));
}

TEST_F(FusionTest, RowsThatAreNoBlocksAreNotQuantised) {
  const uint32_t x = Temp({40, m_}), y = Temp({40, m_});
  builder_.Op(TRINE_OP_RMS_NORM, {x}, {y}, trine_norm_attr{0, 1e-5f});
  Add(x, y, x);
  EXPECT_THAT(Names(), ElementsAre("rms_norm", "add"));
}

TEST_F(FusionTest, TheNormMayTakeThePlaceOfASummand) {
  const uint32_t a = Temp({kWidth, m_}), b = Temp({kWidth, m_}), sum = Temp({kWidth, m_});
  Add(a, b, sum);
  Norm(sum, b);
  EXPECT_THAT(Names(), ElementsAre("add+rms_norm"));
}

TEST_F(FusionTest, RowsThatLieElsewhereInASummandKeepApart) {
  const uint32_t a = Temp({kWidth, m_}), b = Temp({kWidth, m_}), sum = Temp({kWidth, m_});
  Add(a, b, sum);
  Norm(sum, Over(b, {kWidth, m_}, 0, {0, 2 * kWidth * 4}));
  EXPECT_THAT(Names(), ElementsAre("add", "rms_norm"));
}

TEST_F(FusionTest, ANormOfSomethingElseOrOverItsSumKeepsApart) {
  const uint32_t a = Temp({kWidth, m_}), b = Temp({kWidth, m_}), sum = Temp({kWidth, m_});
  Add(a, b, sum);
  Norm(a, b);
  Add(a, b, sum);
  Norm(sum, sum);
  EXPECT_THAT(Names(), ElementsAre("add", "rms_norm", "add", "rms_norm"));
}

TEST_F(FusionTest, SummandsThatRepeatKeepApart) {
  const uint32_t a = Temp({kWidth, m_}), bias = Temp({kWidth}), sum = Temp({kWidth, m_});
  Add(a, bias, sum);
  Norm(sum, a);
  EXPECT_THAT(Names(), ElementsAre("add", "rms_norm"));
}

class AttentionFusionTest : public FusionTest {
 protected:
  void Attend(uint32_t y) {
    builder_.Op(TRINE_OP_ATTENTION,
                {q_, keys_, values_, builder_.I32({4, 1}), builder_.I32({2}), builder_.I32({1})},
                {y}, trine_attention_attr{0, 0, 0.125f, 0.0f, 0});
  }
  void Read(uint32_t dtype, uint32_t x) {
    builder_.Op(TRINE_OP_MATMUL, {Weights(dtype, {256, 8}), x}, {Temp({8, m_})});
  }

  const uint32_t q_ = Temp({64, 4, m_}), keys_ = Cache(), values_ = Cache();
};

TEST_F(AttentionFusionTest, QuantisesTheHeadsOfAToken) {
  const uint32_t y = Temp({64, 4, m_});
  Attend(y);
  Read(TRINE_DTYPE_Q8_0, Over(y, {256, m_}));
  EXPECT_THAT(Names(), ElementsAre("attention+quantize", "matmul q8_0"));
  Attend(y);
  Read(TRINE_DTYPE_F16, Over(y, {256, m_}));
  EXPECT_THAT(Names(), ElementsAre("attention+quantize", "matmul q8_0", "attention", "matmul f16"));
}

// A token's heads are quantised as one column: heads and tokens must be contiguous.
TEST_F(AttentionFusionTest, HeadsThatLieApartAreNotQuantised) {
  const uint32_t all = Temp({1024, m_});
  Attend(Over(all, {64, 4, m_}, 0, {0, 512, 4096}));
  Read(TRINE_DTYPE_Q8_0, Over(all, {256, m_}, 0, {0, 4096}));
  EXPECT_THAT(Names(), ElementsAre("attention", "?matmul q8_0"));
}

TEST_F(AttentionFusionTest, TokensThatLieApartAreNotQuantised) {
  const uint32_t all = Temp({1024, m_});
  Attend(Over(all, {64, 4, m_}, 0, {0, 256, 4096}));
  Read(TRINE_DTYPE_Q8_0, Over(all, {256, m_}, 0, {0, 4096}));
  EXPECT_THAT(Names(), ElementsAre("attention", "?matmul q8_0"));
}

TEST_F(AttentionFusionTest, OtherColumnsOfTheHeadsAreNotQuantised) {
  const uint32_t y = Temp({64, 4, m_});
  Attend(y);
  Read(TRINE_DTYPE_Q8_0, Over(y, {256, m_}, 0, {0, 512}));
  EXPECT_THAT(Names(), ElementsAre("attention", "?matmul q8_0"));
}

class RotationTest : public FusionTest {
 protected:
  const uint32_t table_ = builder_.F32({64, m_}), slots_ = builder_.I32({m_});
};

TEST_F(RotationTest, RopesAndStoresAreOne) {
  const uint32_t q = Temp({64, 4, m_}), k = Temp({64, 2, m_}), v = Temp({64, 2, m_});
  Rope(q, q, table_);
  Rope(k, k, table_);
  Store(k, slots_, Cache());
  Store(v, slots_, Cache());
  EXPECT_THAT(Names(), ElementsAre("rope+rope+kv_store+kv_store"));
  Add(k, k, k);
  EXPECT_THAT(Names(), ElementsAre("rope+rope+kv_store+kv_store!", "add"));
  EXPECT_THAT(Names(false), ElementsAre("rope", "rope", "kv_store", "kv_store", "add"));
}

TEST_F(RotationTest, KMayBeRotatedFirst) {
  const uint32_t q = Temp({64, 4, m_}), k = Temp({64, 2, m_}), v = Temp({64, 2, m_});
  Rope(k, k, table_);
  Rope(q, q, table_);
  Store(k, slots_, Cache());
  Store(v, slots_, Cache());
  EXPECT_THAT(Names(), ElementsAre("rope+rope+kv_store+kv_store"));
}

TEST_F(RotationTest, ColumnsOfOneMatrix) {
  const uint32_t all = Temp({512, m_});
  const auto part = [&](int64_t heads, uint64_t first) {
    return Over(all, {64, heads, m_}, 4 * first, {0, 256, 2048});
  };
  const uint32_t q = part(4, 0), k = part(2, 256), v = part(2, 384);
  Rope(q, q, table_);
  Rope(k, k, table_);
  Store(k, slots_, Cache());
  Store(v, slots_, Cache());
  EXPECT_THAT(Names(), ElementsAre("rope+rope+kv_store+kv_store"));
}

TEST_F(RotationTest, WithoutRopesBothStoresAreOne) {
  const uint32_t k = Temp({64, 2, m_}), v = Temp({64, 2, m_}), cache = Cache();
  Store(k, slots_, cache);
  Store(v, slots_, Cache());
  EXPECT_THAT(Names(), ElementsAre("kv_store+kv_store"));
  Store(v, slots_, cache);
  Store(k, slots_, cache);
  EXPECT_THAT(Names(), ElementsAre("kv_store+kv_store", "kv_store", "kv_store")) << "one cache";
}

TEST_F(RotationTest, CachesOfBlocksAreStoredApart) {
  const uint32_t q = Temp({64, 4, m_}), k = Temp({64, 2, m_}), v = Temp({64, 2, m_});
  Rope(q, q, table_);
  Rope(k, k, table_);
  Store(k, slots_, Cache(TRINE_DTYPE_Q8_KV));
  Store(v, slots_, Cache(TRINE_DTYPE_Q8_KV));
  EXPECT_THAT(Names(), ElementsAre("rope+rope", "kv_store", "kv_store"));
}

TEST_F(RotationTest, WhatDependsOnTheOrderKeepsApart) {
  const uint32_t q = Temp({64, 2, m_}), k = Temp({64, 2, m_});
  Rope(q, k, table_);
  Rope(k, k, table_);
  EXPECT_THAT(Names(), ElementsAre("rope", "rope"));
}

TEST_F(RotationTest, OtherTablesKeepApart) {
  const uint32_t q = Temp({64, 4, m_}), k = Temp({64, 2, m_});
  Rope(q, q, table_);
  Rope(k, k, builder_.F32({64, m_}));
  EXPECT_THAT(Names(), ElementsAre("rope", "rope"));
}

}  // namespace
}  // namespace trine::backends
