// Tests Copy, GatherRows, Rope and the operations that work element by element.

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/test_tensor.h"

namespace trine::reference {
namespace {

TEST(CopyTest, ConvertsAmongFloatTypes) {
  Tensor src(Type::kF32, {4});
  src.Set({1.0f + 0x1p-12f, -1e6f, 0x1p-49f, 3.0f});
  Tensor f16(Type::kF16, {4}), bf16(Type::kBF16, {4}), back(Type::kF32, {4});
  Copy(src, f16, AllRows(f16));
  EXPECT_EQ(f16.Decode(0), (std::vector<float>{1.0f, -65504.0f, 0.0f, 3.0f}));
  Copy(f16, back, AllRows(back));
  EXPECT_EQ(Bits(back.Row(0)[2]), 0u);
  Copy(src, bf16, AllRows(bf16));
  EXPECT_EQ(bf16.Decode(0), (std::vector<float>{1.0f, -999424.0f, 0x1p-49f, 3.0f}));
  Copy(bf16, f16, AllRows(f16));
  EXPECT_EQ(f16.Decode(0)[1], -65504.0f);
}

TEST(CopyTest, SameTypeMovesBytesThroughStrides) {
  Tensor src(Type::kI32, {3, 2, 2}), dst(Type::kI32, {3, 2, 2}, 8);
  src.Set({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  View swapped = src;  // dims 1 and 2 exchanged
  std::swap(swapped.strides[1], swapped.strides[2]);
  Copy(swapped, dst, AllRows(dst));
  EXPECT_EQ(I32Row(dst, 1)[0], 7);
  EXPECT_EQ(I32Row(dst, 2)[2], 6);
}

TEST(GatherRowsTest, DecodesAndCanons) {
  Random random(1);
  for (Type type : quant::kWeightTypes) {
    Tensor table(type, {256, 5}), ids(Type::kI32, {3}), dst(Type::kF32, {256, 3});
    table.FillWeights(true, &random);
    ids.Set({4, -1, 0});
    GatherRows(table, ids, dst, AllRows(dst));
    const std::vector<float> row = table.Decode(4);
    for (int i = 0; i < 256; ++i) {
      EXPECT_EQ(Bits(dst.Row(0)[i]), Bits(Canon(row[i]))) << quant::Traits(type).name;
      EXPECT_EQ(Bits(dst.Row(1)[i]), 0u);
    }
  }
}

TEST(ElementwiseTest, DimensionsOfOneRepeat) {
  Random random(2);
  Tensor a(Type::kF32, {5, 3, 2}), dst(Type::kF32, {5, 3, 2}, 4);
  a.FillWith(Fill::kUniform, &random);
  Tensor row(Type::kF32, {5}), column(Type::kF32, {1, 3}), outer(Type::kF32, {5, 1, 2});
  row.FillWith(Fill::kUniform, &random);
  column.FillWith(Fill::kUniform, &random);
  outer.FillWith(Fill::kUniform, &random);
  Add(a, row, dst, AllRows(dst));
  EXPECT_EQ(dst.Row(4)[3], a.Row(4)[3] + row.Row(0)[3]);
  Mul(a, column, dst, AllRows(dst));
  EXPECT_EQ(dst.Row(4)[3], a.Row(4)[3] * column.Row(1)[0]);
  Add(a, outer, dst, AllRows(dst));
  EXPECT_EQ(dst.Row(4)[3], a.Row(4)[3] + outer.Row(1)[3]);
}

TEST(ElementwiseTest, ResultsAreCanonical) {
  Tensor a(Type::kF32, {2}), dst(Type::kF32, {2});
  a.Set({kHuge, kTiny});
  Mul(a, a, dst, AllRows(dst));
  EXPECT_EQ(dst.Row(0)[0], kHuge);
  EXPECT_EQ(dst.Row(0)[1], 0.0f);
  Scale(a, -0.5f, dst, AllRows(dst));
  EXPECT_EQ(dst.Row(0)[0], -0x1p+49f);
  EXPECT_EQ(Bits(dst.Row(0)[1]), 0u);
}

TEST(ElementwiseTest, ActivationsAndGluEqualTheirFormulas) {
  Random random(3);
  Tensor gate(Type::kF32, {37, 2}), up(Type::kF32, {37, 2}), dst(Type::kF32, {37, 2});
  gate.FillWith(Fill::kOutlier, &random);
  up.FillWith(Fill::kOutlier, &random);
  for (int r = 0; r < 2; ++r) gate.Row(r)[0] = up.Row(r)[1] = 9.5f;
  Glu(gate, up, {GluKind::kClampedSwiglu, 1.702f, 7.0f}, dst, AllRows(dst));
  for (int r = 0; r < 2; ++r) {
    for (int i = 0; i < 37; ++i) {
      const double g = std::min(double{gate.Row(r)[i]}, 7.0);
      const double u = std::clamp(double{up.Row(r)[i]}, -7.0, 7.0);
      const double want = g / (1.0 + std::exp(-1.702 * g)) * (u + 1.0);
      EXPECT_NEAR(dst.Row(r)[i], want, 2e-6 * std::abs(want) + 1e-12);
    }
  }
  Glu(gate, up, {GluKind::kSilu}, dst, AllRows(dst));
  EXPECT_EQ(dst.Row(1)[5], Canon(Silu(gate.Row(1)[5]) * up.Row(1)[5]));
  Glu(gate, up, {GluKind::kGelu}, dst, AllRows(dst));
  EXPECT_EQ(dst.Row(1)[5], Canon(Gelu(gate.Row(1)[5]) * up.Row(1)[5]));
  Activation(gate, ActivationKind::kRelu, dst, AllRows(dst));
  EXPECT_EQ(dst.Row(1)[5], std::max(gate.Row(1)[5], 0.0f));
}

TEST(RopeTest, RotatesPairsAndPassesTheRest) {
  Random random(4);
  const int64_t pairs = 5, width = 13, heads = 2, tokens = 3;
  Tensor x(Type::kF32, {width, heads, tokens}), dst(Type::kF32, {width, heads, tokens});
  Tensor table(Type::kF32, {2 * pairs, tokens});
  x.FillWith(Fill::kUniform, &random);
  table.FillWith(Fill::kUniform, &random);
  for (RopeMode mode : {RopeMode::kInterleaved, RopeMode::kHalves}) {
    Rope(x, table, mode, dst, AllRows(dst));
    for (int64_t r = 0; r < heads * tokens; ++r) {
      const float* angles = table.Row(r / heads);
      for (int64_t i = 0; i < pairs; ++i) {
        const int64_t first = mode == RopeMode::kHalves ? i : 2 * i;
        const int64_t second = mode == RopeMode::kHalves ? i + pairs : 2 * i + 1;
        const double c = angles[i], s = angles[pairs + i];
        const double x0 = x.Row(r)[first], x1 = x.Row(r)[second];
        EXPECT_NEAR(dst.Row(r)[first], x0 * c - x1 * s, 2e-7);
        EXPECT_NEAR(dst.Row(r)[second], x0 * s + x1 * c, 2e-7);
      }
      for (int64_t i = 2 * pairs; i < width; ++i) EXPECT_EQ(dst.Row(r)[i], x.Row(r)[i]);
    }
    Tensor in_place(Type::kF32, {width, heads, tokens});
    Copy(x, in_place, AllRows(x));
    Rope(in_place, table, mode, in_place, AllRows(in_place));
    EXPECT_EQ(in_place.bytes(), dst.bytes());
  }
}

}  // namespace
}  // namespace trine::reference
