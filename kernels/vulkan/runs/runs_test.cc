// Tests what runs pass to their shaders, without a driver.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/vulkan/runs/attention.h"
#include "kernels/vulkan/runs/dispatch.h"
#include "kernels/vulkan/runs/simple.h"
#include "kernels/vulkan/spirv/shaders.h"

namespace trine::vulkan {
namespace {

using quant::Type;
using ::testing::ElementsAre;

TensorView Dense(Type type, std::array<int64_t, 4> dims, uint64_t offset = 0) {
  TensorView view;
  view.type = type;
  view.dims = dims;
  const quant::TypeTraits traits = quant::Traits(type);
  view.strides[1] = dims[0] / traits.block_values * traits.block_bytes;
  view.strides[2] = view.strides[1] * dims[1];
  view.strides[3] = view.strides[2] * dims[2];
  view.offset = offset;
  return view;
}

void ExpectFits(const KernelRun& run) {
  ASSERT_NE(run.shader, nullptr);
  EXPECT_EQ(run.push.size() * 4, run.shader->push_bytes) << run.shader->name;
  EXPECT_EQ(run.operands.size(), run.shader->binding_count) << run.shader->name;
  for (const uint32_t groups : run.groups) EXPECT_LE(groups, kMaxGroups);
}

TEST(RunsTest, FitTheirShaders) {
  const TensorView x = Dense(Type::kF32, {64, 4, 3, 1}), row = Dense(Type::kF32, {64, 1, 1, 1});
  const TensorView ids = Dense(Type::kI32, {3, 1, 1, 1}), two = Dense(Type::kF32, {64, 3, 1, 1});
  ExpectFits(AddRun(x, row, x, 64));
  ExpectFits(GluRun(x, x, {}, x, 64));
  ExpectFits(ScaleRun(x, 2.0f, x, 64));
  ExpectFits(CopyRun(x, x, 64));
  ExpectFits(GatherRowsRun(Dense(Type::kQ4_K, {256, 9, 1, 1}), ids, two, 64));
  ExpectFits(GluQuantizeRun(x, x, {}, x, true, 0));
  Norm norm;
  norm.x = norm.y = x;
  ExpectFits(NormRun(norm, 64));
  norm.weight = norm.bias = row;
  norm.addend = norm.sum = x;
  norm.quantized = 16;
  ExpectFits(NormRun(norm, 64));
  ExpectFits(RopeRun(x, two, reference::RopeMode::kHalves, x, 64));
  ExpectFits(KvStoreRun(x, ids, Dense(Type::kF16, {64, 16, 4, 2}), 64));
  ExpectFits(KvStoreRun(x, ids, Dense(Type::kQ8_KV, {64, 16, 4, 2}), 64));
  RotateStore work;
  work.table = two;
  work.k = x;
  work.q = work.rotated_q = x;
  ExpectFits(RotateStoreRun(work, 64));
  ExpectFits(TopKRun(two, two, two, 64));
  ExpectFits(MoeRouteRun(two, &row, {}, two, two, 64));
  ExpectFits(MoeCombineRun(x, two, two, 64));
}

TEST(RunsTest, AbsentInputsBindTheFirstOne) {
  const TensorView x = Dense(Type::kF32, {64, 4, 1, 1});
  EXPECT_THAT(MoeRouteRun(x, nullptr, {}, x, x, 32).operands, ElementsAre(0, 0, 2, 3));
}

TEST(RunsTest, NothingToDoIsNoGroups) {
  const TensorView none = Dense(Type::kF32, {64, 0, 1, 1});
  EXPECT_EQ(ScaleRun(none, 2.0f, none, 64).groups[0], 0u);
  Norm norm;
  norm.x = norm.y = none;
  EXPECT_EQ(NormRun(norm, 64).groups[0], 0u);
}

// The barriers treat a written binding as a write of the operand bound there. So an operand that is
// only read, or not used at all, must not be bound there.
TEST(NormRunTest, WhatIsAbsentStandsWhereItDoesNoHarm) {
  Norm norm;
  norm.x = norm.y = Dense(Type::kF32, {64, 4, 1, 1});
  EXPECT_THAT(NormRun(norm, 32).operands,
              ElementsAre(kNormX, kNormX, kNormX, kNormX, kNormY, kNormY, kNormY));
  norm.weight = norm.bias = Dense(Type::kF32, {64, 1, 1, 1});
  norm.addend = norm.sum = norm.x;
  EXPECT_THAT(NormRun(norm, 32).operands,
              ElementsAre(kNormX, kNormWeight, kNormBias, kNormAddend, kNormSum, kNormY, kNormY));
  norm.quantized = 0;
  norm.writes_y = false;
  EXPECT_THAT(NormRun(norm, 32).operands, ElementsAre(kNormX, kNormWeight, kNormBias, kNormAddend,
                                                      kNormSum, kScratchOperand, kScratchOperand));
}

TEST(NormRunTest, AnInvocationHoldsWhatTheWorkgroupDoesNot) {
  const auto kept = [](int64_t n, uint32_t workgroup) {
    Norm norm;
    norm.x = norm.y = Dense(Type::kF32, {n, 1, 1, 1});
    return NormRun(norm, workgroup).constants[1];
  };
  EXPECT_EQ(kept(2048, 512), 1u);
  EXPECT_EQ(kept(2049, 512), 2u);
  EXPECT_EQ(kept(64, 32), 2u) << "64 vectors are added up at a time";
  EXPECT_EQ(NormWorkgroup(64, 1024), 32u);
  EXPECT_EQ(NormWorkgroup(2048, 1024), 512u);
  EXPECT_EQ(NormWorkgroup(8192, 1024), 512u);
  EXPECT_EQ(NormWorkgroup(8192, 128), 128u);
}

TEST(RotateStoreRunTest, WhatIsAbsentStandsWhereItDoesNoHarm) {
  const TensorView x = Dense(Type::kF32, {64, 4, 3, 1}), cache = Dense(Type::kF16, {64, 16, 4, 2});
  RotateStore work;
  work.k = x;
  work.slots = Dense(Type::kI32, {3, 1, 1, 1});
  work.v = x;
  work.key_cache = work.value_cache = cache;
  EXPECT_THAT(RotateStoreRun(work, 64).operands,
              ElementsAre(kRotateK, kRotateK, kStoreV, kRotateK, kStoreSlots, kKeyCache, kKeyCache,
                          kKeyCache, kValueCache));
  work.table = Dense(Type::kF32, {64, 3, 1, 1});
  work.q = work.rotated_q = x;
  EXPECT_THAT(RotateStoreRun(work, 64).operands,
              ElementsAre(kRotateQ, kRotateK, kStoreV, kRotateTable, kStoreSlots, kRotatedQ,
                          kKeyCache, kKeyCache, kValueCache));
}

TEST(FlattenTest, JoinsWhatHasNoGaps) {
  TensorView dense = Dense(Type::kF32, {5, 3, 2, 4});
  std::array<int64_t, 4> dims = dense.dims;
  Flatten(&dims, {{&dense, 4}});
  EXPECT_THAT(dims, ElementsAre(120, 1, 1, 1));

  TensorView gapped = Dense(Type::kF32, {5, 3, 2, 4});
  for (int i = 1; i < 4; ++i) gapped.strides[i] = gapped.strides[i] / 20 * 24;
  TensorView other = Dense(Type::kF32, {5, 3, 2, 4});
  dims = gapped.dims;
  Flatten(&dims, {{&gapped, 4}, {&other, 4}});
  EXPECT_THAT(dims, ElementsAre(5, 24, 1, 1));
  EXPECT_EQ(gapped.strides[1], 24);
  EXPECT_EQ(other.strides[1], 20);
}

TEST(FlattenTest, KeepsWhatRepeatsApart) {
  TensorView y = Dense(Type::kF32, {33, 3, 7, 1}), row = Dense(Type::kF32, {33, 1, 1, 1});
  row.strides = {0, 0, 0, 0};
  std::array<int64_t, 4> dims = y.dims;
  Flatten(&dims, {{&y, 4}, {&row, 4}});
  EXPECT_THAT(dims, ElementsAre(33, 21, 1, 1));
  EXPECT_EQ(row.strides[1], 0);

  // A single value repeats along any number of dimensions.
  TensorView all = Dense(Type::kF32, {33, 3, 7, 1}), value;
  dims = all.dims;
  Flatten(&dims, {{&all, 4}, {&value, 0}});
  EXPECT_THAT(dims, ElementsAre(693, 1, 1, 1));
}

TEST(CopyRunTest, MovesByTheLargestUnit) {
  const auto form = [](const TensorView& x) { return CopyRun(x, x, 32).constants[1]; };
  EXPECT_EQ(form(Dense(Type::kF32, {3, 5, 1, 1})), 0u);  // words
  EXPECT_EQ(form(Dense(Type::kF16, {3, 5, 1, 1})), 1u);  // halves
  EXPECT_EQ(form(Dense(Type::kF16, {4, 5, 1, 1})), 0u);  // words
  // whole words, but at an offset of a half
  EXPECT_EQ(form(Dense(Type::kF16, {4, 5, 1, 1}, 2)), 1u);
  EXPECT_EQ(form(Dense(Type::kQ4_0, {32, 5, 1, 1})), 1u);    // 18 bytes
  EXPECT_EQ(form(Dense(Type::kMXFP4, {32, 5, 1, 1})), 2u);   // 17 bytes
  EXPECT_EQ(form(Dense(Type::kMXFP4, {128, 5, 1, 1})), 0u);  // 68 bytes
}

AttentionViews DecodeViews(int64_t tokens, int64_t sequences, int64_t heads, int64_t kv_heads) {
  AttentionViews views;
  views.q = Dense(Type::kF32, {64, heads, tokens, 1});
  views.k = views.v = Dense(Type::kF16, {64, 16, kv_heads, 40});
  views.block_table = Dense(Type::kI32, {40, sequences, 1, 1});
  views.q_offsets = Dense(Type::kI32, {sequences + 1, 1, 1, 1});
  views.kv_lengths = Dense(Type::kI32, {sequences, 1, 1, 1});
  views.y = Dense(Type::kF32, {64, heads, tokens, 1});
  return views;
}

TEST(AttentionRunTest, FitsItsShaders) {
  AttentionViews views = DecodeViews(3, 2, 8, 2);
  const TensorView sinks = Dense(Type::kF32, {8, 1, 1, 1});
  for (const bool with_sinks : {false, true}) {
    views.sinks = with_sinks ? &sinks : nullptr;
    for (const AttentionCut& cut :
         {AttentionCut{128, 4, false}, AttentionCut{128, 8, false}, AttentionCut{128, 4, true}}) {
      const std::vector<KernelRun> runs = AttentionRuns(views, {}, 600, cut);
      EXPECT_EQ(runs.size(), cut.split ? 2u : 1u);
      for (const KernelRun& run : runs) ExpectFits(run);
      EXPECT_EQ(runs.back().operands.back(), kAttentionY);
      const std::vector<KernelRun> quantizing = AttentionRuns(views, {}, 600, cut, true);
      for (const KernelRun& run : quantizing) ExpectFits(run);
      EXPECT_EQ(quantizing.back().operands.back(), kAttentionQuantized);
    }
  }
}

TEST(AttentionRunTest, SplitsWhenThereAreFewRowsAndManyPositions) {
  EXPECT_TRUE(ChooseAttentionCut(DecodeViews(1, 1, 32, 8), 4096, {}).split);
  EXPECT_FALSE(ChooseAttentionCut(DecodeViews(1, 1, 32, 8), 256, {}).split);
  const AttentionCut prompt = ChooseAttentionCut(DecodeViews(512, 1, 32, 8), 4096, {});
  EXPECT_FALSE(prompt.split);
  EXPECT_EQ(prompt.rows, 8u);
}

TEST(AttentionRunTest, ScratchHoldsEachChunkOfEachRow) {
  const AttentionViews views = DecodeViews(2, 1, 32, 8);
  EXPECT_EQ(AttentionScratchBytes(views, 600, {128, 4, true}), 2u * 32 * 3 * (64 + 2) * 4);
  EXPECT_EQ(AttentionScratchBytes(views, 600, {128, 4, false}), 0u);
}

// Rows of tokens that are likely to be of different sequences must not share a workgroup.
TEST(AttentionRunTest, KeepsTokensOfManySequencesApart) {
  const AttentionCut cut = {128, 4, false};
  EXPECT_EQ(AttentionRuns(DecodeViews(6, 6, 2, 2), {}, 600, cut)[0].groups[0], 6u);
  EXPECT_EQ(AttentionRuns(DecodeViews(6, 1, 2, 2), {}, 600, cut)[0].groups[0], 2u);
}

TEST(AttentionRunTest, FitsSharedMemoryThatEveryDeviceHas) {
  AttentionViews views = DecodeViews(1, 1, 8, 8);
  views.q.dims[0] = views.k.dims[0] = 256;
  EXPECT_LE(AttentionSharedBytes(views, {128, 8, false}), 32768u);
  EXPECT_GT(AttentionSharedBytes(views, {256, 8, false}), 32768u);
  for (const int64_t width : {64, 128, 256, 512, 1024}) {
    for (const int64_t tokens : {1, 4096}) {
      views = DecodeViews(tokens, 1, 32, 8);
      views.q.dims[0] = views.k.dims[0] = width;
      const AttentionCut cut = ChooseAttentionCut(views, 4096, {});
      EXPECT_LE(AttentionSharedBytes(views, cut), 32768u) << width;
    }
  }
  AttentionDevice small;
  small.max_workgroup = 128;
  EXPECT_EQ(ChooseAttentionCut(DecodeViews(1, 1, 32, 8), 4096, small).workgroup, 128u);
}

}  // namespace
}  // namespace trine::vulkan
