#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/abi/graph_builder.h"
#include "trine/sdk/graph.h"

namespace trine::sdk {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// y [8, tokens] = scale * x [8, tokens]
GraphBuilder Good() {
  GraphBuilder b;
  const int64_t tokens = b.Param(1, 16);
  const uint32_t x = b.F32({8, tokens}), y = b.F32({8, tokens});
  b.Op(TRINE_OP_SCALE, {x}, {y}, trine_scale_attr{0, 2.0f});
  return b;
}

TEST(CopyGraphTest, CopiesAGoodGraph) {
  const GraphBuilder b = Good();
  Graph graph;
  ASSERT_EQ(b.Refusal(&graph), "");
  EXPECT_EQ(graph.slots.size(), 2u);
  EXPECT_EQ(graph.tensors.size(), 2u);
  EXPECT_THAT(graph.MaxParams(), ElementsAre(16));
  ASSERT_EQ(graph.ops.size(), 1u);
  EXPECT_EQ(graph.ops[0].kind, uint32_t{TRINE_OP_SCALE});
  EXPECT_THAT(graph.ops[0].in, ElementsAre(0u));
  EXPECT_THAT(graph.ops[0].out, ElementsAre(1u));
  EXPECT_EQ(graph.ops[0].Attr<trine_scale_attr>().scale, 2.0f);
}

TEST(CopyGraphTest, TakesTheEmptyGraph) { EXPECT_EQ(GraphBuilder().Refusal(), ""); }

TEST(CopyGraphTest, KeepsNothingOfTheHosts) {
  Graph graph;
  {
    GraphBuilder b = Good();
    ASSERT_EQ(b.Refusal(&graph), "");
  }
  EXPECT_EQ(graph.ops[0].Attr<trine_scale_attr>().scale, 2.0f);
}

TEST(CopyGraphTest, ReadsElementsOfANewerHostByTheirStride) {
  const GraphBuilder b = Good();
  struct LongTensor {
    trine_tensor tensor;
    uint64_t appended;
  };
  const LongTensor longer[] = {{b.tensors[0], ~uint64_t{0}}, {b.tensors[1], ~uint64_t{0}}};
  trine_graph abi = b.Abi();
  abi.tensors = &longer[0].tensor;
  abi.tensor_stride = sizeof(LongTensor);
  Graph graph;
  ASSERT_EQ(CopyGraph(&abi, &graph, nullptr), TRINE_OK);
  EXPECT_EQ(graph.tensors[1].slot, 1u);
}

TEST(CopyGraphTest, RefusesNull) {
  Graph graph;
  trine_error err{};
  EXPECT_EQ(CopyGraph(nullptr, &graph, &err), TRINE_INVALID_ARGUMENT);
  const trine_graph good = Good().Abi();
  for (int array = 0; array < 4; ++array) {
    trine_graph abi = good;
    if (array == 0) abi.slots = nullptr;
    if (array == 1) abi.tensors = nullptr;
    if (array == 2) abi.ops = nullptr;
    if (array == 3) abi.params = nullptr;
    EXPECT_EQ(CopyGraph(&abi, &graph, &err), TRINE_INVALID_ARGUMENT);
    EXPECT_THAT(err.message, HasSubstr("null"));
  }
}

TEST(CopyGraphTest, RefusesAbsurdCounts) {
  Graph graph;
  trine_graph abi{};
  abi.struct_size = sizeof(abi);
  abi.n_tensors = 0xffffffffu;
  EXPECT_EQ(CopyGraph(&abi, &graph, nullptr), TRINE_INVALID_ARGUMENT);
  GraphBuilder b = Good();
  b.ops[0].n_in = 0xffffffffu;
  EXPECT_THAT(b.Refusal(), HasSubstr("too many"));
}

TEST(CopyGraphTest, RefusesOperandsThatAreNotThere) {
  GraphBuilder b = Good();
  b.Op(TRINE_OP_ADD, {0, 7}, {1});
  EXPECT_THAT(b.Refusal(), HasSubstr("reads a tensor"));
  b = Good();
  b.Op(TRINE_OP_ADD, {0, TRINE_NONE}, {TRINE_NONE});
  EXPECT_THAT(b.Refusal(), HasSubstr("writes a tensor"));
  b = Good();
  b.ops[0].in = nullptr;
  EXPECT_THAT(b.Refusal(), HasSubstr("null"));
  b = Good();
  b.ops[0].out = nullptr;
  EXPECT_THAT(b.Refusal(), HasSubstr("null"));
}

TEST(CopyGraphTest, RefusesToWriteAConstant) {
  GraphBuilder b = Good();
  b.slots[1].role = TRINE_ROLE_CONSTANT;
  EXPECT_THAT(b.Refusal(), HasSubstr("writes a constant"));
}

TEST(CopyGraphTest, RefusesAttributesWithoutAPlausibleSize) {
  for (const uint32_t size : {0u, 3u, 0xffffffffu}) {
    GraphBuilder b = Good();
    b.ops[0].attr = &size;
    EXPECT_THAT(b.Refusal(), HasSubstr("plausible size")) << size;
  }
}

TEST(CopyGraphTest, AttributesOfAnOlderHostReadAsZero) {
  const trine_glu_attr older = {8, TRINE_ACT_SILU, 1.0f, 2.0f};
  GraphBuilder b = Good();
  b.ops[0].attr = &older;
  Graph graph;
  ASSERT_EQ(b.Refusal(&graph), "");
  const auto attr = graph.ops[0].Attr<trine_glu_attr>();
  EXPECT_EQ(attr.activation, uint32_t{TRINE_ACT_SILU});
  EXPECT_EQ(attr.alpha, 0.0f);
  b.ops[0].attr = nullptr;
  ASSERT_EQ(b.Refusal(&graph), "");
  EXPECT_EQ(graph.ops[0].Attr<trine_glu_attr>().activation, 0u);
}

TEST(CopyGraphTest, RefusesBadSlots) {
  GraphBuilder b = Good();
  b.slots[0].alternates = 0;
  EXPECT_THAT(b.Refusal(), HasSubstr("alternate"));
  b = Good();
  b.slots[0].alternates = 0xffffffffu;
  EXPECT_THAT(b.Refusal(), HasSubstr("alternates"));
  b = Good();
  b.slots[0].role = TRINE_ROLE_STATE;
  b.slots[0].alternates = 2;
  EXPECT_THAT(b.Refusal(), HasSubstr("alternates"));
}

// If such sizes were accepted, the size of the scratch would wrap to a small one.
TEST(CopyGraphTest, RefusesSlotsWhoseSumWraps) {
  GraphBuilder b = Good();
  b.slots[1].role = TRINE_ROLE_TEMP;
  b.slots[1].bytes = ~uint64_t{0};
  EXPECT_THAT(b.Refusal(), HasSubstr("too large"));
  b = Good();
  for (int i = 0; i < 4; ++i) b.Slot(TRINE_ROLE_TEMP, uint64_t{1} << 45);
  EXPECT_THAT(b.Refusal(), HasSubstr("too large"));
}

TEST(CopyGraphTest, RefusesBadParameterRanges) {
  GraphBuilder b = Good();
  b.params[0].min = -1;
  EXPECT_THAT(b.Refusal(), HasSubstr("range"));
  b = Good();
  b.params[0] = {TRINE_PARAM_TOKENS, 0, 5, 4};
  EXPECT_THAT(b.Refusal(), HasSubstr("range"));
}

TEST(CopyGraphTest, RefusesUnknownNumerics) {
  const GraphBuilder b = Good();
  trine_graph abi = b.Abi();
  abi.numerics = 0;
  Graph graph;
  EXPECT_EQ(CopyGraph(&abi, &graph, nullptr), TRINE_INVALID_ARGUMENT);
}

TEST(CopyGraphTest, RefusesBadTensors) {
  GraphBuilder b = Good();
  for (const uint32_t rank : {0u, 5u, 0xffffffffu}) {
    b = Good();
    b.tensors[0].rank = rank;
    EXPECT_THAT(b.Refusal(), HasSubstr("rank"));
  }
  b = Good();
  b.tensors[0].slot = 2;
  EXPECT_THAT(b.Refusal(), HasSubstr("slot"));
  b = Good();
  b.tensors[0].strides[0] = 4;
  EXPECT_THAT(b.Refusal(), HasSubstr("strides[0]"));
}

TEST(CopyGraphTest, RefusesDimensionsThatNameNoParameter) {
  for (const int64_t dim : {int64_t{-2}, int64_t{-1000}, kMin, kMin + 1}) {
    GraphBuilder b = Good();
    b.tensors[0].dims[1] = dim;
    EXPECT_THAT(b.Refusal(), HasSubstr("names no parameter")) << dim;
  }
}

TEST(CopyGraphTest, RefusesRowsThatAreNoWholeBlocks) {
  GraphBuilder b;
  b.Tensor(TRINE_DTYPE_Q8_0, {48, 2});
  EXPECT_THAT(b.Refusal(), HasSubstr("whole number of blocks"));
  b = GraphBuilder();
  b.Tensor(TRINE_DTYPE_Q8_0, {b.Param(32, 64), 2});
  EXPECT_THAT(b.Refusal(), HasSubstr("known length"));
}

TEST(CopyGraphTest, RefusesTensorsBeyondTheirSlot) {
  GraphBuilder b;
  b.Tensor(TRINE_DTYPE_F32, {8, 4}, TRINE_ROLE_IO, 128);
  EXPECT_EQ(b.Refusal(), "");
  b.slots[0].bytes = 127;
  EXPECT_THAT(b.Refusal(), HasSubstr("beyond its slot"));
  b.slots[0].bytes = 128;
  b.tensors[0].offset = 4;
  EXPECT_THAT(b.Refusal(), HasSubstr("beyond its slot"));
  b.tensors[0].offset = ~uint64_t{3};
  EXPECT_THAT(b.Refusal(), HasSubstr("beyond its slot"));
}

TEST(CopyGraphTest, CountsParametersAtTheirMaxima) {
  GraphBuilder b;
  const int64_t tokens = b.Param(0, 4);
  b.Tensor(TRINE_DTYPE_F32, {8, tokens}, TRINE_ROLE_IO, 128);
  EXPECT_EQ(b.Refusal(), "");
  b.params[0].max = 5;
  EXPECT_THAT(b.Refusal(), HasSubstr("beyond its slot"));
}

TEST(CopyGraphTest, APackedLayoutsSizeIsItsPluginsAffair) {
  GraphBuilder b;
  b.Tensor(TRINE_DTYPE_F32, {8, 4}, TRINE_ROLE_CONSTANT, 16);
  b.tensors[0].layout = uint64_t{1} << 40;
  EXPECT_EQ(b.Refusal(), "");
}

TEST(CopyGraphTest, RefusesMisalignedViews) {
  const struct {
    uint32_t dtype;
    uint64_t alignment;
  } cases[] = {{TRINE_DTYPE_F32, 4},  {TRINE_DTYPE_F16, 2},   {TRINE_DTYPE_I32, 4},
               {TRINE_DTYPE_Q8_0, 2}, {TRINE_DTYPE_Q8_KV, 4}, {TRINE_DTYPE_Q4_K, 4}};
  for (const auto& c : cases) {
    GraphBuilder b;
    b.Tensor(c.dtype, {256, 2});
    b.tensors[0].offset = c.alignment;
    b.tensors[0].strides[1] = static_cast<int64_t>(2048 + c.alignment);
    EXPECT_EQ(b.Refusal(), "") << DtypeName(c.dtype);
    b.tensors[0].offset = c.alignment / 2;
    EXPECT_THAT(b.Refusal(), HasSubstr("aligned")) << DtypeName(c.dtype);
    b.tensors[0].offset = 0;
    b.tensors[0].strides[1] += static_cast<int64_t>(c.alignment / 2);
    EXPECT_THAT(b.Refusal(), HasSubstr("aligned")) << DtypeName(c.dtype);
  }
  GraphBuilder b;  // blocks of 17 bytes start anywhere
  b.Tensor(TRINE_DTYPE_MXFP4, {32, 2});
  b.tensors[0].offset = 1;
  EXPECT_EQ(b.Refusal(), "");
}

// Every refusal must come without an overflow: run under UBSan.
TEST(CopyGraphTest, SurvivesDimensionsThatOverflow) {
  const int64_t kHostile[] = {kMax,     kMax - 1,         kMax / 2,
                              kMax / 4, int64_t{1} << 46, int64_t{1} << 32};
  for (const int64_t dim : kHostile) {
    for (size_t i = 0; i < 4; ++i) {
      GraphBuilder b;
      b.Tensor(TRINE_DTYPE_F32, {2, 2, 2, 2});
      b.tensors[0].dims[i] = dim;
      EXPECT_NE(b.Refusal(), "") << dim << " at " << i;
    }
    GraphBuilder b;
    b.Tensor(TRINE_DTYPE_F32, {dim, dim, dim, dim});
    EXPECT_NE(b.Refusal(), "");
  }
}

TEST(CopyGraphTest, SurvivesStridesThatOverflow) {
  for (const int64_t stride : {kMin, int64_t{-4}, kMax - 3, int64_t{1} << 62, int64_t{1} << 46}) {
    for (size_t i = 1; i < 4; ++i) {
      GraphBuilder b;
      b.Tensor(TRINE_DTYPE_F32, {2, 2, 2, 2});
      b.tensors[0].strides[i] = stride;
      EXPECT_NE(b.Refusal(), "") << stride << " at " << i;
    }
  }
}

// Nothing is read of such tensors, but loops still multiply their dimensions and strides.
TEST(CopyGraphTest, AnEmptyDimensionHidesNoAbsurdOnes) {
  GraphBuilder b;
  b.Tensor(TRINE_DTYPE_F32, {0, int64_t{1} << 45, int64_t{1} << 45});
  EXPECT_NE(b.Refusal(), "");
  b = GraphBuilder();
  b.Tensor(TRINE_DTYPE_F32, {4, 0, 2});
  EXPECT_EQ(b.Refusal(), "");
  b.tensors[0].strides[2] = kMax - 3;
  EXPECT_NE(b.Refusal(), "");
}

// A stride below the row's length repeats values: few bytes, any number of rows.
TEST(CopyGraphTest, OverlappingRowsHideNoAbsurdCount) {
  GraphBuilder b;
  b.Tensor(TRINE_DTYPE_F16, {1, int64_t{1} << 44, int64_t{1} << 44}, TRINE_ROLE_IO,
           uint64_t{1} << 46);
  b.tensors[0].strides[1] = 2;
  b.tensors[0].strides[2] = 2;
  EXPECT_NE(b.Refusal(), "");
}

TEST(ResolveTest, PutsParametersIn) {
  trine_tensor t{};
  t.dtype = TRINE_DTYPE_F32;
  t.rank = 3;
  t.dims[0] = -1;
  t.dims[1] = 7;
  t.dims[2] = -2;
  t.dims[3] = 99;  // beyond the rank
  const int64_t params[] = {5, 3};
  EXPECT_THAT(ResolveDims(t, params), ElementsAre(5, 7, 3, 1));
}

TEST(ResolveTest, PackedStridesFollowTheRun) {
  trine_tensor t{};
  t.dtype = TRINE_DTYPE_F32;
  t.rank = 4;
  const Dims dims = {5, 7, 3, 2};
  EXPECT_THAT(ResolveStrides(t, dims), ElementsAre(4, 20, 140, 420));
  t.strides[1] = 64;  // padded rows, with data between them
  EXPECT_THAT(ResolveStrides(t, dims), ElementsAre(4, 64, 448, 1344));
}

TEST(ResolveTest, BlocksCountAsBytes) {
  trine_tensor t{};
  t.dtype = TRINE_DTYPE_Q8_0;
  t.rank = 2;
  EXPECT_THAT(ResolveStrides(t, Dims{64, 10, 1, 1}), ElementsAre(34, 68, 680, 680));
}

TEST(DtypeTest, SizesOfValues) {
  EXPECT_EQ(ValueBytes(TRINE_DTYPE_F16, 3), 6);
  EXPECT_EQ(ValueBytes(TRINE_DTYPE_Q4_K, 512), 288);
  EXPECT_EQ(ValueBytes(TRINE_DTYPE_Q4_K, 100), -1);
  EXPECT_EQ(ValueBytes(TRINE_DTYPE_F32, -1), -1);
  EXPECT_EQ(ValueBytes(TRINE_DTYPE_F32, kMax), -1);
  EXPECT_EQ(ValueBytes(0, 1), -1);
  EXPECT_STREQ(DtypeName(TRINE_DTYPE_MXFP4), "mxfp4");
  EXPECT_STREQ(DtypeName(7), "unknown type");
}

}  // namespace
}  // namespace trine::sdk
