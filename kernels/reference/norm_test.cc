#include <gtest/gtest.h>

#include <cmath>

#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/test_tensor.h"

namespace trine::reference {
namespace {

class NormTest : public testing::TestWithParam<int64_t> {};

TEST_P(NormTest, RmsNormEqualsDouble) {
  const int64_t n = GetParam();
  Random random(1);
  Tensor x(Type::kF32, {n, 3}), w(Type::kF32, {n}), y(Type::kF32, {n, 3}, 12);
  x.FillWith(Fill::kOutlier, &random);
  w.FillWith(Fill::kUniform, &random);
  RmsNorm(x, &w.view(), 1e-5f, y, AllRows(y));
  for (int64_t r = 0; r < 3; ++r) {
    double squares = 0.0;
    for (int64_t i = 0; i < n; ++i) squares += double{x.Row(r)[i]} * x.Row(r)[i];
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    for (int64_t i = 0; i < n; ++i) {
      const double want = x.Row(r)[i] * scale * w.Row(0)[i];
      EXPECT_NEAR(y.Row(r)[i], want, 1e-6 * std::abs(want) + 1e-14);
    }
  }
}

TEST_P(NormTest, LayerNormEqualsDouble) {
  const int64_t n = GetParam();
  Random random(2);
  Tensor x(Type::kF32, {n, 3}), w(Type::kF32, {n}), b(Type::kF32, {n}), y(Type::kF32, {n, 3});
  x.FillWith(Fill::kUniform, &random);
  w.FillWith(Fill::kUniform, &random);
  b.FillWith(Fill::kUniform, &random);
  LayerNorm(x, &w.view(), &b.view(), 1e-5f, y, AllRows(y));
  for (int64_t r = 0; r < 3; ++r) {
    double mean = 0.0, variance = 0.0;
    for (int64_t i = 0; i < n; ++i) mean += x.Row(r)[i] / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) variance += std::pow(x.Row(r)[i] - mean, 2);
    const double scale = 1.0 / std::sqrt(variance / static_cast<double>(n) + 1e-5);
    for (int64_t i = 0; i < n; ++i) {
      const double want = (x.Row(r)[i] - mean) * scale * w.Row(0)[i] + b.Row(0)[i];
      EXPECT_NEAR(y.Row(r)[i], want, 3e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OddWidths, NormTest, testing::Values(1, 31, 32, 33, 100, 896));

TEST(NormTest, RowsOfZerosStayZero) {
  Tensor x(Type::kF32, {40}), y(Type::kF32, {40});
  RmsNorm(x, nullptr, 0.0f, y, AllRows(y));
  for (int i = 0; i < 40; ++i) EXPECT_EQ(Bits(y.Row(0)[i]), 0u);
  LayerNorm(x, nullptr, nullptr, 0.0f, y, AllRows(y));
  for (int i = 0; i < 40; ++i) EXPECT_EQ(Bits(y.Row(0)[i]), 0u);
}

TEST(NormTest, WorksInPlace) {
  Random random(3);
  Tensor x(Type::kF32, {50, 2}), y(Type::kF32, {50, 2});
  x.FillWith(Fill::kUniform, &random);
  LayerNorm(x, nullptr, nullptr, 1e-5f, y, AllRows(y));
  LayerNorm(x, nullptr, nullptr, 1e-5f, x, AllRows(x));
  EXPECT_EQ(x.bytes(), y.bytes());
}

}  // namespace
}  // namespace trine::reference
