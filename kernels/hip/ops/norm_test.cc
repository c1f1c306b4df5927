#include "kernels/hip/ops/ops.h"
#include "kernels/hip/testing/gpu_fixture.h"
#include "kernels/hip/testing/quantized_columns.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/test_tensor.h"

namespace trine::hip {
namespace {

using quant::Fill;
using quant::Random;
using quant::Type;
using reference::AllRows;
using reference::View;
using testing::BytesIn;
using testing::OnDevice;
using Values = reference::Tensor;  // on the host; a Tensor is on the device

void Reference(const View& x, bool centred, const View* weight, const View* bias, float eps,
               const View& y) {
  if (centred) {
    reference::LayerNorm(x, weight, bias, eps, y, AllRows(y));
  } else {
    reference::RmsNorm(x, weight, eps, y, AllRows(y));
  }
}

// Checks rms_norm and layer_norm with and without weight and bias, apart and in place.
void CheckPlain(int64_t n, int64_t rows, Fill fill, int64_t padding, size_t offset) {
  Random random(static_cast<uint64_t>(n));
  for (const int parts : {0, 1, 4, 5, 6, 7}) {
    const bool has_weight = (parts & 1) != 0, has_bias = (parts & 2) != 0;
    Values x(Type::kF32, {n, 2, rows}, padding), want(Type::kF32, {n, 2, rows}, padding);
    Values weight(Type::kF32, {n}), bias(Type::kF32, {n});
    x.FillWith(fill, &random);
    weight.FillWith(Fill::kUniform, &random);
    bias.FillWith(Fill::kUniform, &random);
    Reference(x, (parts & 4) != 0, has_weight ? &weight.view() : nullptr,
              has_bias ? &bias.view() : nullptr, 1e-6f, want);
    testing::UnderEverySchedule([&] {
      const OnDevice in(x, offset), w(weight, offset), b(bias, offset);
      const OnDevice out(Values(Type::kF32, {n, 2, rows}, padding), offset);
      Norm norm;
      norm.x = in.tensor();
      if (has_weight) norm.weight = w.tensor();
      if (has_bias) norm.bias = b.tensor();
      norm.eps = 1e-6f;
      norm.centred = (parts & 4) != 0;
      norm.y = out.tensor();
      testing::RunLaunch(NormLaunch(norm));
      ASSERT_EQ(out.Bytes(), BytesIn(want)) << n << " parts " << parts;
      ASSERT_EQ(in.Bytes(), BytesIn(x));
      norm.y = norm.x;
      testing::RunLaunch(NormLaunch(norm));
      ASSERT_EQ(in.Bytes(), BytesIn(want)) << n << " parts " << parts << " in place";
    });
  }
}

TEST(HipNorm, ShortRows) {
  for (const int64_t n : {1, 17, 32, 128, 255, 256}) CheckPlain(n, 3, Fill::kUniform, 4, 4);
  CheckPlain(64, 2, Fill::kWide, 0, 0);
  CheckPlain(64, 2, Fill::kTiny, 0, 0);
  CheckPlain(64, 2, Fill::kZero, 0, 0);
}

TEST(HipNorm, FewRows) {
  for (const int64_t n : {257, 896, 2048, 4099}) CheckPlain(n, 1, Fill::kUniform, 4, 4);
  for (const int64_t n : {260, 512, 1024, 2052, 5120, 8192}) CheckPlain(n, 1, Fill::kWide, 0, 0);
  CheckPlain(512, 1, Fill::kTiny, 16, 16);
  CheckPlain(512, 1, Fill::kZero, 16, 0);
}

TEST(HipNorm, ManyRows) {
  CheckPlain(257, 33, Fill::kWide, 0, 0);
  CheckPlain(1088, 33, Fill::kOutlier, 0, 0);
}

TEST(HipNorm, LongRows) {
  CheckPlain(8193, 1, Fill::kUniform, 0, 4);
  CheckPlain(16388, 1, Fill::kOutlier, 0, 0);
}

TEST(HipNorm, NoRowsAndNoValues) {
  for (const auto& [n, rows] : {std::pair<int64_t, int64_t>{0, 2}, {64, 0}, {5000, 0}}) {
    const OnDevice in(Values(Type::kF32, {n, rows}));
    Norm norm;
    norm.x = norm.y = in.tensor();
    EXPECT_TRUE(NormLaunch(norm).empty());
  }
}

// Each row takes a root and a reciprocal.
TEST(HipNorm, RootsOfManySums) {
  Random random(3);
  Values x(Type::kF32, {1, 20'000}), want(Type::kF32, {1, 20'000});
  x.FillWith(Fill::kWide, &random);
  reference::RmsNorm(x, nullptr, 1e-9f, want, AllRows(want));
  const OnDevice in(x);
  Norm norm;
  norm.x = norm.y = in.tensor();
  norm.eps = 1e-9f;
  testing::RunLaunch(NormLaunch(norm));
  EXPECT_EQ(in.Bytes(), BytesIn(want));
}

// Checks sum, norm and quantised norm of each kind, written or not, apart and in place.
class FusedNormTest : public ::testing::TestWithParam<bool> {
 protected:
  enum class Place { kApart, kSumInX, kYInAddend };

  static void Check(int64_t n, int64_t rows, Fill fill, bool writes_y, bool quantizes, Place place,
                    int64_t padding) {
    const bool centred = GetParam();
    Random random(static_cast<uint64_t>(n));
    Values x(Type::kF32, {n, rows, 2}, padding), addend(Type::kF32, {n, rows, 2}, 2 * padding);
    Values weight(Type::kF32, {n});
    Values sum(Type::kF32, {n, rows, 2}, (place == Place::kSumInX ? 1 : 3) * padding);
    Values want(Type::kF32, {n, rows, 2}, (place == Place::kYInAddend ? 2 : 0) * padding);
    for (Values* t : {&x, &addend}) t->FillWith(fill, &random);
    weight.FillWith(Fill::kUniform, &random);
    const std::vector<std::byte> untouched = BytesIn(want), addends = BytesIn(addend);
    testing::UnderEverySchedule([&] {
      const OnDevice in(x), other(addend), w(weight), sums(sum), out(want);
      const testing::QuantizedOnDevice quantized(n / 32, rows * 2);
      Norm norm;
      norm.centred = centred;
      norm.x = in.tensor();
      norm.addend = other.tensor();
      const OnDevice& sum_at = place == Place::kSumInX ? in : sums;
      const OnDevice& y_at = place == Place::kYInAddend ? other : out;
      norm.sum = sum_at.tensor();
      norm.weight = w.tensor();
      norm.eps = 1e-5f;
      if (writes_y) norm.y = y_at.tensor();
      if (quantizes) norm.quantized = quantized.columns();
      testing::RunLaunch(NormLaunch(norm));
      Values want_sum(Type::kF32, {n, rows, 2}, (place == Place::kSumInX ? 1 : 3) * padding);
      Values want_y(Type::kF32, {n, rows, 2}, (place == Place::kYInAddend ? 2 : 0) * padding);
      reference::Add(x, addend, want_sum, AllRows(want_sum));
      Reference(want_sum, centred, &weight.view(), nullptr, 1e-5f, want_y);
      ASSERT_EQ(sum_at.Bytes(), BytesIn(want_sum)) << n;
      if (writes_y) {
        ASSERT_EQ(y_at.Bytes(), BytesIn(want_y)) << n;
      } else {
        ASSERT_EQ(out.Bytes(), untouched) << n;
        ASSERT_EQ(other.Bytes(), addends) << n;
      }
      if (quantizes) {
        ASSERT_EQ(quantized.Wrong(want_y), "") << n;
      }
    });
  }
};

TEST_P(FusedNormTest, AddsNormsAndQuantises) {
  for (const int64_t n : {32, 224, 896, 2048, 4128}) {
    Check(n, 1, Fill::kUniform, false, true, Place::kApart, 0);
    Check(n, 1, Fill::kOutlier, false, true, Place::kApart, 4);
  }
  Check(640, 33, Fill::kWide, false, true, Place::kApart, 0);
  Check(96, 1, Fill::kTiny, false, true, Place::kApart, 0);
  Check(96, 1, Fill::kZero, false, true, Place::kApart, 0);
}

TEST_P(FusedNormTest, WritesWhatElseIsRead) {
  for (const Place place : {Place::kApart, Place::kSumInX, Place::kYInAddend}) {
    Check(896, 1, Fill::kUniform, true, true, place, 16);
    Check(1000, 1, Fill::kUniform, true, false, place, 4);
    Check(17, 3, Fill::kWide, true, false, place, 4);
    Check(896, 1, Fill::kUniform, false, true, place, 4);
    Check(12'320, 1, Fill::kUniform, true, true, place, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FusedNormTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "layer_norm" : "rms_norm"; });

}  // namespace
}  // namespace trine::hip
