#include <gtest/gtest.h>

#include <cmath>

#include "kernels/quant/activation.h"
#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/test_tensor.h"

namespace trine::reference {
namespace {

class MatmulTest : public testing::TestWithParam<Type> {};

// Returns the activations after quantisation, as quantised weights are multiplied with them.
std::vector<double> Quantized(const float* x, int64_t k) {
  std::vector<double> out;
  for (int64_t i = 0; i < k; i += quant::kGroupValues) {
    quant::ActivationBlock block;
    quant::QuantizeActivation(x + i, &block);
    for (int8_t q : block.q) out.push_back(double{block.d} * q);
  }
  return out;
}

TEST_P(MatmulTest, EqualsDouble) {
  const Type type = GetParam();
  const int64_t block = quant::Traits(type).block_values;
  const int64_t n = 37, m = 3;
  for (const int64_t k : {block * 3, block == 1 ? int64_t{101} : block * 5}) {
    Random random(static_cast<uint64_t>(type));
    Tensor w(type, {k, n}), x(Type::kF32, {k, m}, 4), bias(Type::kF32, {n}), y(Type::kF32, {n, m});
    w.FillWeights(false, &random);
    x.FillWith(Fill::kUniform, &random);
    bias.FillWith(Fill::kUniform, &random);
    Matmul(w, x, &bias.view(), y, {0, n});
    for (int64_t column = 0; column < m; ++column) {
      const float* row = x.Row(column);
      const std::vector<double> activations =
          quant::IsQuantized(type) ? Quantized(row, k) : std::vector<double>(row, row + k);
      for (int64_t r = 0; r < n; ++r) {
        const std::vector<float> weights = w.Decode(r);
        double want = bias.Row(0)[r], magnitude = std::abs(want);
        for (int64_t i = 0; i < k; ++i) {
          want += weights[i] * activations[i];
          magnitude += std::abs(weights[i] * activations[i]);
        }
        EXPECT_NEAR(y.Row(column)[r], want, 2e-6 * magnitude);
      }
    }
  }
}

TEST_P(MatmulTest, MoeMatmulEqualsMatmulOfTheExpert) {
  const Type type = GetParam();
  const int64_t k = 256, n = 9, n_experts = 4, n_used = 2, tokens = 3;
  Random random(static_cast<uint64_t>(type));
  Tensor w(type, {k, n, n_experts}), bias(Type::kF32, {n, n_experts});
  Tensor ids(Type::kI32, {n_used, tokens}), y(Type::kF32, {n, n_used, tokens});
  w.FillWeights(false, &random);
  bias.FillWith(Fill::kUniform, &random);
  ids.Set({3, 0, 1, 9, 2, 2});
  for (int64_t x_slots : {int64_t{1}, n_used}) {
    Tensor x(Type::kF32, {k, x_slots, tokens});
    x.FillWith(Fill::kUniform, &random);
    MoeMatmul(w, x, ids, &bias.view(), y, {0, n});
    for (int64_t row = 0; row < n_used * tokens; ++row) {
      const int32_t expert = I32Row(ids, 0)[row];
      Tensor want(Type::kF32, {n});
      if (expert < n_experts) {
        View expert_w = w, expert_bias = bias, expert_x = x;
        expert_w.data = RowAt(w, 0, expert, 0);
        expert_bias.data = RowAt(bias, expert);
        expert_x.data = RowAt(x, x_slots == 1 ? 0 : row % n_used, row / n_used, 0);
        expert_x.dims[1] = expert_x.dims[2] = 1;
        Matmul(expert_w, expert_x, &expert_bias, want, {0, n});
      }
      for (int64_t i = 0; i < n; ++i) EXPECT_EQ(Bits(y.Row(row)[i]), Bits(want.Row(0)[i]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllWeightTypes, MatmulTest, testing::ValuesIn(quant::kWeightTypes),
                         [](const testing::TestParamInfo<Type>& info) {
                           return quant::Traits(info.param).name;
                         });

TEST(MatmulTest, OverflowEndsAtTheLargestValue) {
  Tensor w(Type::kF32, {3, 1}), x(Type::kF32, {3, 1}), y(Type::kF32, {1, 1});
  w.Set({kHuge, kHuge, 1.0f});
  x.Set({kHuge, kHuge, 1.0f});
  Matmul(w, x, nullptr, y, {0, 1});
  EXPECT_EQ(y.Row(0)[0], kHuge);
}

}  // namespace
}  // namespace trine::reference
