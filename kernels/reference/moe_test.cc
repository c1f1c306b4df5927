// Tests MoeRoute, MoeCombine and TopK. matmul_test.cc tests MoeMatmul.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/test_tensor.h"

namespace trine::reference {
namespace {

std::vector<int32_t> SortedIds(const float* scores, int64_t n) {
  std::vector<int32_t> ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(),
                   [scores](int32_t a, int32_t b) { return scores[a] > scores[b]; });
  return ids;
}

TEST(TopKTest, EqualsAStableSort) {
  Random random(1);
  Tensor logits(Type::kF32, {97, 2}), ids(Type::kI32, {20, 2}), values(Type::kF32, {20, 2});
  for (int64_t r = 0; r < 2; ++r) {
    for (int i = 0; i < 97; ++i) {  // few distinct values, so many ties
      logits.Row(r)[i] = static_cast<float>(random.Below(9)) - 4.0f;
    }
  }
  TopK(logits, ids, values, AllRows(logits));
  for (int64_t r = 0; r < 2; ++r) {
    const std::vector<int32_t> want = SortedIds(logits.Row(r), 97);
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(I32Row(ids, r)[i], want[i]);
      EXPECT_EQ(values.Row(r)[i], logits.Row(r)[want[i]]);
    }
  }
}

class MoeRouteTest : public testing::Test {
 protected:
  MoeRouteTest()
      : logits_(Type::kF32, {45, 3}),
        bias_(Type::kF32, {45}),
        ids_(Type::kI32, {6, 3}),
        weights_(Type::kF32, {6, 3}) {
    Random random(2);
    logits_.FillWith(Fill::kUniform, &random);
    bias_.FillWith(Fill::kUniform, &random);
  }

  Tensor logits_, bias_, ids_, weights_;
};

TEST_F(MoeRouteTest, SoftmaxOverAll) {
  MoeRoute(logits_, nullptr, {}, ids_, weights_, {0, 3});
  for (int64_t token = 0; token < 3; ++token) {
    const std::vector<int32_t> want = SortedIds(logits_.Row(token), 45);
    double sum = 0.0;
    for (int i = 0; i < 45; ++i) sum += std::exp(double{logits_.Row(token)[i]});
    for (int slot = 0; slot < 6; ++slot) {
      EXPECT_EQ(I32Row(ids_, token)[slot], want[slot]);
      const double weight = std::exp(double{logits_.Row(token)[want[slot]]}) / sum;
      EXPECT_NEAR(weights_.Row(token)[slot], weight, 1e-6 * weight);
    }
  }
}

TEST_F(MoeRouteTest, BiasSelectsButDoesNotWeigh) {
  MoeRoute(logits_, &bias_.view(), {MoeScoring::kSigmoid, true, 2.5f}, ids_, weights_, {0, 3});
  for (int64_t token = 0; token < 3; ++token) {
    std::vector<float> score(45);
    for (int i = 0; i < 45; ++i) score[i] = Sigmoid(logits_.Row(token)[i]) + bias_.Row(0)[i];
    const std::vector<int32_t> want = SortedIds(score.data(), 45);
    double sum = 0.0;
    for (int slot = 0; slot < 6; ++slot) sum += Sigmoid(logits_.Row(token)[want[slot]]);
    for (int slot = 0; slot < 6; ++slot) {
      EXPECT_EQ(I32Row(ids_, token)[slot], want[slot]);
      const double weight = 2.5 * Sigmoid(logits_.Row(token)[want[slot]]) / sum;
      EXPECT_NEAR(weights_.Row(token)[slot], weight, 1e-6);
    }
  }
}

TEST_F(MoeRouteTest, SoftmaxOverTheSelected) {
  MoeRoute(logits_, &bias_.view(), {MoeScoring::kSelectedSoftmax}, ids_, weights_, {0, 3});
  for (int64_t token = 0; token < 3; ++token) {
    double sum = 0.0;
    for (int slot = 0; slot < 6; ++slot) {
      sum += std::exp(double{logits_.Row(token)[I32Row(ids_, token)[slot]]});
    }
    for (int slot = 0; slot < 6; ++slot) {
      const double weight = std::exp(double{logits_.Row(token)[I32Row(ids_, token)[slot]]}) / sum;
      EXPECT_NEAR(weights_.Row(token)[slot], weight, 1e-6);
    }
  }
}

TEST_F(MoeRouteTest, TiesGoToTheLowestId) {
  std::fill_n(logits_.Row(0), 45, 1.0f);
  MoeRoute(logits_, nullptr, {}, ids_, weights_, {0, 1});
  for (int slot = 0; slot < 6; ++slot) EXPECT_EQ(I32Row(ids_, 0)[slot], slot);
}

TEST_F(MoeRouteTest, NoWeightAtAllIsNoNaN) {
  std::fill_n(logits_.Row(0), 45, -1000.0f);
  MoeRoute(logits_, nullptr, {MoeScoring::kSigmoid, true}, ids_, weights_, {0, 1});
  for (int slot = 0; slot < 6; ++slot) EXPECT_EQ(Bits(weights_.Row(0)[slot]), 0u);
}

TEST(MoeCombineTest, SumsInSlotOrder) {
  Tensor x(Type::kF32, {1, 3, 1}), weights(Type::kF32, {3, 1}), y(Type::kF32, {1, 1});
  x.Set({0x1p+24f, 1.0f, 1.0f});
  weights.Set({1.0f, 1.0f, 1.0f});
  MoeCombine(x, weights, y, {0, 1});
  EXPECT_EQ(y.Row(0)[0], 0x1p+24f);  // any other order gives 2 more
  weights.Set({0.5f, 2.0f, -1.0f});
  MoeCombine(x, weights, y, {0, 1});
  EXPECT_EQ(y.Row(0)[0], 0x1p+23f + 1.0f);
}

}  // namespace
}  // namespace trine::reference
