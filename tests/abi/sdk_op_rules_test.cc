#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/abi/graph_builder.h"
#include "trine/sdk/op_rules.h"

namespace trine::sdk {
namespace {

using testing::HasSubstr;

// Returns the message of CheckOp for the last op. The graph itself must be valid.
std::string Check(const GraphBuilder& b) {
  Graph graph;
  const std::string refusal = b.Refusal(&graph);
  return refusal.empty() ? CheckOp(graph, graph.ops.size() - 1) : "graph: " + refusal;
}

// Makes one good op of each kind. Tests break one thing in a copy.
constexpr int64_t kTokens = -1;  // the first parameter

struct Example {
  GraphBuilder graph;
  Example() { graph.Param(1, 8); }
  trine_tensor& In(size_t i) { return graph.tensors[graph.ops.back().in[i]]; }
  trine_tensor& Out(size_t i) { return graph.tensors[graph.ops.back().out[i]]; }
  trine_op& Op() { return graph.ops.back(); }
};

Example Make(uint32_t kind) {
  Example e;
  GraphBuilder& g = e.graph;
  switch (kind) {
    case TRINE_OP_COPY:
      g.Op(kind, {g.F32({8, kTokens})}, {g.Tensor(TRINE_DTYPE_F16, {8, kTokens})});
      break;
    case TRINE_OP_GATHER_ROWS:
      g.Op(kind, {g.Tensor(TRINE_DTYPE_Q4_0, {64, 100}), g.I32({kTokens})}, {g.F32({64, kTokens})});
      break;
    case TRINE_OP_RMS_NORM:
      g.Op(kind, {g.F32({8, kTokens}), g.F32({8})}, {g.F32({8, kTokens})},
           trine_norm_attr{0, 1e-5f});
      break;
    case TRINE_OP_LAYER_NORM:
      g.Op(kind, {g.F32({8, kTokens}), g.F32({8}), g.F32({8})}, {g.F32({8, kTokens})},
           trine_norm_attr{0, 1e-5f});
      break;
    case TRINE_OP_MATMUL:
      g.Op(kind, {g.Tensor(TRINE_DTYPE_Q8_0, {64, 10}), g.F32({64, kTokens}), g.F32({10})},
           {g.F32({10, kTokens})});
      break;
    case TRINE_OP_ROPE:
      g.Op(kind, {g.F32({16, 4, kTokens}), g.F32({8, kTokens})}, {g.F32({16, 4, kTokens})},
           trine_rope_attr{0, TRINE_ROPE_HALVES});
      break;
    case TRINE_OP_KV_STORE:
      g.Op(kind, {g.F32({32, 2, kTokens}), g.I32({kTokens})},
           {g.Tensor(TRINE_DTYPE_Q8_KV, {32, 16, 2, 5}, TRINE_ROLE_STATE)});
      break;
    case TRINE_OP_ATTENTION:
      g.Op(kind,
           {g.F32({32, 4, kTokens}), g.Tensor(TRINE_DTYPE_F16, {32, 16, 2, 5}, TRINE_ROLE_STATE),
            g.Tensor(TRINE_DTYPE_F16, {24, 16, 2, 5}, TRINE_ROLE_STATE), g.I32({3, 2}), g.I32({3}),
            g.I32({2}), g.F32({4})},
           {g.F32({24, 4, kTokens})},
           trine_attention_attr{0, TRINE_ATTENTION_CAUSAL, 0.125f, 0.0f, 0});
      break;
    case TRINE_OP_GLU:
      g.Op(kind, {g.F32({8, kTokens}), g.F32({8, kTokens})}, {g.F32({8, kTokens})},
           trine_glu_attr{0, TRINE_ACT_SILU, 0.0f, 0.0f});
      break;
    case TRINE_OP_ACTIVATION:
      g.Op(kind, {g.F32({8, kTokens})}, {g.F32({8, kTokens})},
           trine_activation_attr{0, TRINE_ACT_RELU});
      break;
    case TRINE_OP_ADD:
    case TRINE_OP_MUL:
      g.Op(kind, {g.F32({8, 4, kTokens}), g.F32({8, 1, kTokens})}, {g.F32({8, 4, kTokens})});
      break;
    case TRINE_OP_SCALE:
    case TRINE_OP_SOFTCAP:
      g.Op(kind, {g.F32({8, kTokens})}, {g.F32({8, kTokens})}, trine_scale_attr{0, 30.0f});
      break;
    case TRINE_OP_MOE_ROUTE:
      g.Op(kind, {g.F32({16, kTokens}), g.F32({16})}, {g.I32({4, kTokens}), g.F32({4, kTokens})},
           trine_moe_route_attr{0, TRINE_MOE_SOFTMAX, 0, 1.0f});
      break;
    case TRINE_OP_MOE_MATMUL:
      g.Op(kind,
           {g.Tensor(TRINE_DTYPE_Q4_0, {64, 10, 16}), g.F32({64, 1, kTokens}), g.I32({4, kTokens}),
            g.F32({10, 16})},
           {g.F32({10, 4, kTokens})});
      break;
    case TRINE_OP_MOE_COMBINE:
      g.Op(kind, {g.F32({10, 4, kTokens}), g.F32({4, kTokens})}, {g.F32({10, kTokens})});
      break;
    case TRINE_OP_TOP_K:
      g.Op(kind, {g.F32({100, kTokens})}, {g.I32({5, kTokens}), g.F32({5, kTokens})});
      break;
  }
  return e;
}

class EveryOpTest : public testing::TestWithParam<uint32_t> {
 protected:
  Example example_ = Make(GetParam());
};

TEST_P(EveryOpTest, TakesAGoodOne) { EXPECT_EQ(Check(example_.graph), ""); }

TEST_P(EveryOpTest, RefusesMissingInputs) {
  example_.Op().n_in = 0;
  EXPECT_THAT(Check(example_.graph), HasSubstr("inputs"));
}

TEST_P(EveryOpTest, RefusesAnAbsentRequiredInput) {
  const uint32_t none[8] = {TRINE_NONE, TRINE_NONE, TRINE_NONE, TRINE_NONE,
                            TRINE_NONE, TRINE_NONE, TRINE_NONE, TRINE_NONE};
  example_.Op().in = none;
  EXPECT_THAT(Check(example_.graph), HasSubstr("absent"));
}

TEST_P(EveryOpTest, RefusesTooManyInputs) {
  const uint32_t many[8] = {};
  example_.Op().in = many;
  example_.Op().n_in = 8;
  EXPECT_THAT(Check(example_.graph), HasSubstr("inputs"));
}

TEST_P(EveryOpTest, RefusesAnotherNumberOfOutputs) {
  example_.Op().n_out = 0;
  EXPECT_THAT(Check(example_.graph), HasSubstr("outputs"));
}

TEST_P(EveryOpTest, RefusesMissingAttributes) {
  if (example_.Op().attr == nullptr) GTEST_SKIP() << "has none";
  example_.Op().attr = nullptr;
  EXPECT_THAT(Check(example_.graph), HasSubstr("attributes"));
}

TEST_P(EveryOpTest, RefusesAttributesCutShort) {
  if (example_.Op().attr == nullptr) GTEST_SKIP() << "has none";
  const uint32_t size_alone = sizeof(size_alone);
  example_.Op().attr = &size_alone;
  EXPECT_THAT(Check(example_.graph), HasSubstr("attributes"));
}

TEST_P(EveryOpTest, RefusesAnyOperandWithOneRowMore) {
  for (size_t i = 0; i < example_.Op().n_in + example_.Op().n_out; ++i) {
    Example e = Make(GetParam());
    trine_tensor& t = i < e.Op().n_in ? e.In(i) : e.Out(i - e.Op().n_in);
    // Skip dimensions that the rules leave open: rows of a table, blocks of a cache or table,
    // q_offsets, experts.
    if (t.rank == 1 && GetParam() == TRINE_OP_ATTENTION && i == 4) continue;
    size_t last = t.rank - 1;
    if ((GetParam() == TRINE_OP_GATHER_ROWS && i == 0) ||
        (GetParam() == TRINE_OP_KV_STORE && i == 2)) {
      continue;
    }
    t.dims[last] = t.dims[last] < 0 ? 9 : t.dims[last] + 1;
    EXPECT_NE(Check(e.graph), "") << "operand " << i;
  }
}

TEST_P(EveryOpTest, RefusesIntegersForFloats) {
  Example e = Make(GetParam());
  if (GetParam() == TRINE_OP_KV_STORE) {
    e.In(0).dtype = TRINE_DTYPE_I32;
  } else {
    trine_tensor& t = e.Out(e.Op().n_out - 1);
    t.dtype = TRINE_DTYPE_I32;
  }
  EXPECT_NE(Check(e.graph), "");
}

TEST_P(EveryOpTest, HasAName) { EXPECT_STRNE(OpName(GetParam()), "unknown op"); }

INSTANTIATE_TEST_SUITE_P(Ops, EveryOpTest,
                         testing::Range(uint32_t{TRINE_OP_COPY}, uint32_t{TRINE_OP_TOP_K} + 1),
                         [](const auto& info) { return OpName(info.param); });

TEST(CheckOpTest, RefusesKindsItDoesNotKnow) {
  for (const uint32_t kind : {0u, 19u, 0xffffffffu}) {
    GraphBuilder g;
    g.Op(kind, {g.F32({8})}, {g.F32({8})});
    EXPECT_THAT(Check(g), HasSubstr("does not know it")) << kind;
  }
}

// Types and roles of a newer host make only the ops that use them fail.
TEST(CheckOpTest, RefusesOnlyTheOpsThatUseWhatItDoesNotKnow) {
  GraphBuilder b;
  const uint32_t x = b.F32({8}), strange = b.F32({8}), y = b.F32({8});
  b.Op(TRINE_OP_ADD, {x, x}, {y});
  b.Op(TRINE_OP_ADD, {x, strange}, {y});
  b.tensors[strange].dtype = 34;
  Graph graph;
  ASSERT_EQ(b.Refusal(&graph), "");
  EXPECT_EQ(CheckOp(graph, 0), "");
  EXPECT_EQ(CheckOp(graph, 1), "add: unknown type 34");
  b.tensors[strange].dtype = TRINE_DTYPE_F32;
  b.slots[b.tensors[strange].slot].role = 9;
  ASSERT_EQ(b.Refusal(&graph), "");
  EXPECT_EQ(CheckOp(graph, 0), "");
  EXPECT_EQ(CheckOp(graph, 1), "add: a slot of an unknown role");
}

TEST(CheckOpTest, ParametersOfOneRangeAreStillTwo) {
  GraphBuilder b;
  const int64_t n = b.Param(1, 8), m = b.Param(1, 8);
  b.Op(TRINE_OP_ADD, {b.F32({4, n}), b.F32({4, n})}, {b.F32({4, m})});
  Graph graph;
  ASSERT_EQ(b.Refusal(&graph), "");
  EXPECT_EQ(CheckOp(graph, 0), "add: dimensions differ");
}

TEST(CheckOpTest, DimensionsThatBoundOthersAreConstants) {
  GraphBuilder b;
  const int64_t n = b.Param(4, 8);
  b.Op(TRINE_OP_TOP_K, {b.F32({n, 2})}, {b.I32({4, 2}), b.F32({4, 2})});
  Graph graph;
  ASSERT_EQ(b.Refusal(&graph), "");
  EXPECT_EQ(CheckOp(graph, 0), "top_k: a dimension must be a constant");
}

TEST(CheckOpTest, RulesMustHoldAtMinimaToo) {
  GraphBuilder g;
  const int64_t tokens = g.Param(1, 8);
  g.Op(TRINE_OP_ADD, {g.F32({8, tokens}), g.F32({8, 8})}, {g.F32({8, tokens})});
  EXPECT_NE(Check(g), "");
}

TEST(CheckOpTest, CopyConvertsFloatsOnly) {
  GraphBuilder g;
  g.Op(TRINE_OP_COPY, {g.Tensor(TRINE_DTYPE_Q8_0, {32})}, {g.Tensor(TRINE_DTYPE_Q8_0, {32})});
  EXPECT_EQ(Check(g), "");
  g = GraphBuilder();
  g.Op(TRINE_OP_COPY, {g.Tensor(TRINE_DTYPE_Q8_0, {32})}, {g.F32({32})});
  EXPECT_THAT(Check(g), HasSubstr("conversion"));
}

TEST(CheckOpTest, OptionalInputsMayBeLeftOut) {
  Example e = Make(TRINE_OP_MATMUL);
  const uint32_t in[] = {e.Op().in[0], e.Op().in[1], TRINE_NONE};
  e.Op().in = in;
  EXPECT_EQ(Check(e.graph), "");
  e.Op().n_in = 2;
  EXPECT_EQ(Check(e.graph), "");
}

TEST(CheckOpTest, MatmulWantsWeights) {
  Example e = Make(TRINE_OP_MATMUL);
  e.In(0).dtype = TRINE_DTYPE_Q8_KV;
  EXPECT_THAT(Check(e.graph), HasSubstr("weight"));
  e.In(0).dtype = TRINE_DTYPE_I32;
  EXPECT_THAT(Check(e.graph), HasSubstr("weight"));
}

TEST(CheckOpTest, NormsNeedValues) {
  GraphBuilder g;
  g.Op(TRINE_OP_RMS_NORM, {g.F32({0, 4})}, {g.F32({0, 4})}, trine_norm_attr{0, 1e-5f});
  EXPECT_THAT(Check(g), HasSubstr("empty"));
}

TEST(CheckOpTest, KvBlocksDivideTheChunk) {
  for (const int64_t positions : {int64_t{1}, int64_t{16}, int64_t{256}}) {
    Example e = Make(TRINE_OP_KV_STORE);
    e.Out(0).dims[1] = positions;
    EXPECT_EQ(Check(e.graph), "") << positions;
  }
  for (const int64_t positions : {int64_t{0}, int64_t{3}, int64_t{512}}) {
    Example e = Make(TRINE_OP_KV_STORE);
    e.Out(0).dims[1] = positions;
    EXPECT_THAT(Check(e.graph), HasSubstr("divide")) << positions;
  }
}

TEST(CheckOpTest, AttentionGroupsHeads) {
  Example e = Make(TRINE_OP_ATTENTION);
  e.In(0).dims[1] = 3;  // 3 heads over 2 KV heads
  EXPECT_THAT(Check(e.graph), HasSubstr("heads"));
  e = Make(TRINE_OP_ATTENTION);
  e.In(1).dims[2] = e.In(2).dims[2] = 0;
  EXPECT_THAT(Check(e.graph), HasSubstr("heads"));
}

// Latent attention: one KV head, the values a view of the keys.
TEST(CheckOpTest, AttentionTakesValuesThatAreAViewOfTheKeys) {
  GraphBuilder g;
  const uint32_t k = g.Tensor(TRINE_DTYPE_F16, {576, 16, 1, 5}, TRINE_ROLE_STATE);
  trine_tensor v = g.tensors[k];
  v.dims[0] = 512;
  v.strides[1] = 576 * 2;
  v.strides[2] = v.strides[3] = 576 * 2 * 16;
  g.tensors.push_back(v);
  g.Op(TRINE_OP_ATTENTION, {g.F32({576, 16, 4}), k, k + 1, g.I32({5, 1}), g.I32({2}), g.I32({1})},
       {g.F32({512, 16, 4})}, trine_attention_attr{0, TRINE_ATTENTION_CAUSAL, 0.125f, 0.0f, 0});
  EXPECT_EQ(Check(g), "");
}

TEST(CheckOpTest, ExpertsAreNoMoreThanThereAre) {
  Example e = Make(TRINE_OP_MOE_ROUTE);
  e.Out(0).dims[0] = e.Out(1).dims[0] = 17;
  EXPECT_NE(Check(e.graph), "");
  e.Out(0).dims[0] = e.Out(1).dims[0] = 0;
  EXPECT_NE(Check(e.graph), "");
}

TEST(CheckOpTest, TopKIsNoMoreThanThereIs) {
  Example e = Make(TRINE_OP_TOP_K);
  e.Out(0).dims[0] = e.Out(1).dims[0] = 101;
  EXPECT_NE(Check(e.graph), "");
}

TEST(CheckOpTest, RopeTablesHoldPairs) {
  Example e = Make(TRINE_OP_ROPE);
  e.In(1).dims[0] = 7;
  EXPECT_THAT(Check(e.graph), HasSubstr("table"));
  e.In(1).dims[0] = 18;  // more than a head has
  EXPECT_THAT(Check(e.graph), HasSubstr("table"));
}

}  // namespace
}  // namespace trine::sdk
