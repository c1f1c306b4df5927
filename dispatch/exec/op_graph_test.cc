#include "dispatch/exec/op_graph.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trine/backend_sdk.h"

namespace trine {
namespace {

std::string CopyErrors(const OpGraph& graph) {
  const trine_graph view = graph.View();
  sdk::Graph copy;
  trine_error err{};
  if (sdk::CopyGraph(&view, &copy, &err) != TRINE_OK) return err.message;
  for (size_t i = 0; i < copy.ops.size(); ++i) {
    const std::string why = sdk::CheckOp(copy, i);
    if (!why.empty()) return why;
  }
  return "";
}

uint64_t TempBytes(const OpGraph& graph) {
  uint64_t bytes = 0;
  for (const trine_slot& s : graph.slots()) bytes += s.role == TRINE_ROLE_TEMP ? s.bytes : 0;
  return bytes;
}

// x -> x + x, `depth` times.
OpGraph Chain(int depth) {
  OpGraph g;
  const int64_t m = g.AddParam(TRINE_PARAM_TOKENS, 1, 8);
  TensorId x = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {64, m});
  const TensorId last = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {64, m});
  for (int i = 0; i < depth; ++i) {
    const TensorId y = i + 1 == depth ? last : g.AddTemp({64, m});
    g.AddOp(TRINE_OP_ADD, {x, x}, {y});
    x = y;
  }
  g.Finish();
  return g;
}

TEST(OpGraphTest, ADeepChainNeedsTwoTemporaries) {
  const OpGraph g = Chain(50);
  EXPECT_EQ(TempBytes(g), 2u * 64 * 8 * 4);
  EXPECT_EQ(CopyErrors(g), "");
}

// Views the two halves of each row of a temporary, like gate and up that come from one matrix.
TEST(OpGraphTest, AViewIsPartOfItsTensorsMemory) {
  OpGraph g;
  const int64_t m = g.AddParam(TRINE_PARAM_TOKENS, 1, 8);
  const TensorId in = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {64, m});
  const TensorId out = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {32, m});
  const TensorId both = g.AddTemp({64, m});
  g.AddOp(TRINE_OP_ADD, {in, in}, {both});
  const TensorId first = g.AddView(both, {32, m}, {0, 256}, 0);
  const TensorId second = g.AddView(both, {32, m}, {0, 256}, 128);
  g.AddOp(TRINE_OP_MUL, {first, second}, {out});
  g.Finish();
  EXPECT_EQ(CopyErrors(g), "");
  EXPECT_EQ(TempBytes(g), 64u * 8 * 4);
  EXPECT_EQ(g.SlotOf(first), g.SlotOf(second));
  EXPECT_EQ(g.tensor(second).offset, 128u);
  EXPECT_EQ(g.tensor(second).strides[1], 256);
}

TEST(OpGraphTest, ATensorInUseKeepsItsMemory) {
  OpGraph g;
  const TensorId in = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {8});
  const TensorId out = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {8});
  const TensorId kept = g.AddTemp({8});
  g.AddOp(TRINE_OP_ADD, {in, in}, {kept});
  const TensorId a = g.AddTemp({8});
  g.AddOp(TRINE_OP_ADD, {in, in}, {a});
  const TensorId b = g.AddTemp({8});
  g.AddOp(TRINE_OP_ADD, {a, a}, {b});
  const TensorId c = g.AddTemp({8});
  g.AddOp(TRINE_OP_ADD, {b, b}, {c});
  g.AddOp(TRINE_OP_ADD, {c, kept}, {out});
  g.Finish();
  for (TensorId other : {a, b, c}) EXPECT_NE(g.SlotOf(other), g.SlotOf(kept));
  EXPECT_NE(g.SlotOf(a), g.SlotOf(b));
  EXPECT_EQ(g.SlotOf(a), g.SlotOf(c));
  EXPECT_EQ(CopyErrors(g), "");
}

TEST(OpGraphTest, AReshapeLivesAsLongAsItsLastUse) {
  OpGraph g;
  const TensorId in = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {8, 2});
  const TensorId out = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {4, 4});
  const TensorId a = g.AddTemp({8, 2});
  g.AddOp(TRINE_OP_ADD, {in, in}, {a});
  const TensorId reshaped = g.AddReshape(a, {4, 4});
  const TensorId b = g.AddTemp({8, 2});
  g.AddOp(TRINE_OP_ADD, {in, in}, {b});
  const TensorId b4 = g.AddReshape(b, {4, 4});
  g.AddOp(TRINE_OP_ADD, {reshaped, b4}, {out});
  g.Finish();
  EXPECT_EQ(g.SlotOf(a), g.SlotOf(reshaped));
  EXPECT_NE(g.SlotOf(a), g.SlotOf(b));
  EXPECT_EQ(CopyErrors(g), "");
}

TEST(OpGraphTest, ASharedSlotIsAsLargeAsItsLargestTensor) {
  OpGraph g;
  const TensorId small_in = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {8});
  const TensorId large_in = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {800});
  const TensorId small_out = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {8});
  const TensorId large_out = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {800});
  const TensorId a = g.AddTemp({8});
  g.AddOp(TRINE_OP_ADD, {small_in, small_in}, {a});
  g.AddOp(TRINE_OP_ADD, {a, a}, {small_out});
  const TensorId b = g.AddTemp({800});
  g.AddOp(TRINE_OP_ADD, {large_in, large_in}, {b});
  g.AddOp(TRINE_OP_ADD, {b, b}, {large_out});
  g.Finish();
  EXPECT_EQ(g.SlotOf(a), g.SlotOf(b));
  EXPECT_EQ(TempBytes(g), 3200u);
  EXPECT_EQ(CopyErrors(g), "");
}

TEST(OpGraphTest, ATemporaryNobodyUsesTakesNothing) {
  OpGraph g = Chain(1);
  g.AddTemp({1 << 20});
  g.Finish();
  EXPECT_EQ(TempBytes(g), 0u);
  EXPECT_EQ(CopyErrors(g), "");
}

TEST(OpGraphTest, ALayoutIsOfTheOnlyTensorOfItsSlot) {
  OpGraph g;
  const int64_t m = g.AddParam(TRINE_PARAM_TOKENS, 1, 8);
  const TensorId w = g.AddTensor(TRINE_ROLE_CONSTANT, TRINE_DTYPE_F32, {64, 30});
  const TensorId viewed = g.AddTensor(TRINE_ROLE_CONSTANT, TRINE_DTYPE_F32, {64, 30});
  const TensorId part = g.AddView(viewed, {64, 15}, {0, 256}, 0);
  const TensorId x = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {64, m});
  const TensorId y = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {30, m});
  const TensorId z = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {15, m});
  g.AddOp(TRINE_OP_MATMUL, {w, x}, {y});
  g.AddOp(TRINE_OP_MATMUL, {part, x}, {z});
  g.Finish();
  EXPECT_TRUE(g.AloneInSlot(w));
  EXPECT_FALSE(g.AloneInSlot(viewed));
  EXPECT_FALSE(g.AloneInSlot(part));
  EXPECT_EQ(g.Readers(w), (std::vector<uint32_t>{0}));
  EXPECT_EQ(g.Readers(x), (std::vector<uint32_t>{0, 1}));
  const uint64_t layout = uint64_t{5} << 32;
  g.SetLayout(w, layout, 8192);
  EXPECT_EQ(g.tensor(w).layout, layout);
  EXPECT_EQ(g.slots()[g.SlotOf(w)].bytes, 8192u);
  EXPECT_EQ(CopyErrors(g), "");
  g.SetLayout(w, TRINE_LAYOUT_PLAIN, g.Bytes(w));
  EXPECT_EQ(g.slots()[g.SlotOf(w)].bytes, 64u * 30 * 4);
}

TEST(OpGraphTest, AttributesAndOffsetsTravel) {
  OpGraph g;
  const TensorId x = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {8}, 32);
  const TensorId y = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {8});
  g.AddOp(TRINE_OP_SCALE, {x}, {y}, trine_scale_attr{0, 2.5f});
  g.Finish();
  OpGraph moved = std::move(g);
  const trine_graph view = moved.View();
  EXPECT_EQ(view.slots[view.tensors[x].slot].bytes, 64u);
  const auto* attr = static_cast<const trine_scale_attr*>(view.ops[0].attr);
  EXPECT_EQ(attr->struct_size, sizeof(trine_scale_attr));
  EXPECT_EQ(attr->scale, 2.5f);
}

}  // namespace
}  // namespace trine
