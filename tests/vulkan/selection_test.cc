#include "kernels/reference/ops.h"
#include "kernels/vulkan/runs/simple.h"
#include "tests/vulkan/shader_runner.h"

namespace trine::vulkan {
namespace {

using quant::Fill;
using reference::AllRows;
using reference::Random;
using reference::Tensor;
using reference::Type;

class SelectionShaderTest : public ShaderTest {};

TEST_F(SelectionShaderTest, TopK) {
  Random random(1);
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 1},
                             {17, 3},
                             {64, 64},
                             {300, 300},
                             {1000, 40},
                             {40'099, 7}}) {
    for (const Fill fill : {Fill::kUniform, Fill::kZero, Fill::kWide}) {
      Tensor x(Type::kF32, {n, 3}, 4), ids(Type::kI32, {k, 3}, 8), values(Type::kF32, {k, 3});
      x.FillWith(fill, &random);
      // Make equal values, far apart and close.
      for (int64_t i = 0; i + 9 < n; i += 5) x.Row(1)[i] = x.Row(1)[i + 9];
      Bytes in = OperandOf(x, 4), got_ids = OperandOf(ids, 8), got_values = OperandOf(values);
      reference::TopK(x, ids, values, AllRows(x));
      const uint32_t workgroup = n == 300 ? 32 : 256;
      const KernelRun run = TopKRun(ViewOf(x, 4), ViewOf(ids, 8), ViewOf(values), workgroup);
      const absl::Status status = runner_->Run({run}, {&in, &got_ids, &got_values});
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(Difference(got_ids, OperandOf(ids, 8)), "") << n;
      EXPECT_EQ(Difference(got_values, OperandOf(values)), "") << n;
    }
  }
}

TEST_F(SelectionShaderTest, MoeRoute) {
  using reference::MoeScoring;
  Random random(2);
  for (const MoeScoring scoring :
       {MoeScoring::kSoftmax, MoeScoring::kSigmoid, MoeScoring::kSelectedSoftmax}) {
    for (const auto& [experts, used] :
         {std::pair<int64_t, int64_t>{1, 1}, {8, 2}, {33, 33}, {128, 8}, {300, 4}}) {
      for (const Fill fill : {Fill::kUniform, Fill::kZero, Fill::kOutlier, Fill::kWide}) {
        for (const int variant : {0, 1, 2, 3}) {
          const bool biased = (variant & 1) != 0;
          const reference::MoeRouteParams params = {scoring, (variant & 2) != 0,
                                                    biased ? 2.5f : 1.0f};
          Tensor logits(Type::kF32, {experts, 5}, 4), bias(Type::kF32, {experts});
          Tensor ids(Type::kI32, {used, 5}), weights(Type::kF32, {used, 5}, 12);
          logits.FillWith(fill, &random);
          bias.FillWith(Fill::kUniform, &random);
          Bytes in = OperandOf(logits), b = OperandOf(bias, 4);
          Bytes got_ids = OperandOf(ids), got_weights = OperandOf(weights, 4);
          const TensorView bias_view = ViewOf(bias, 4);
          reference::MoeRoute(logits, biased ? &bias.view() : nullptr, params, ids, weights,
                              {0, 5});
          const KernelRun run =
              MoeRouteRun(ViewOf(logits), biased ? &bias_view : nullptr, params, ViewOf(ids),
                          ViewOf(weights, 4), experts == 33 ? 32 : 128);
          const absl::Status status = runner_->Run({run}, {&in, &b, &got_ids, &got_weights});
          ASSERT_TRUE(status.ok()) << status;
          EXPECT_EQ(Difference(got_ids, OperandOf(ids)), "") << experts;
          EXPECT_EQ(Difference(got_weights, OperandOf(weights, 4)), "") << experts;
        }
      }
    }
  }
}

TEST_F(SelectionShaderTest, MoeCombine) {
  Random random(3);
  for (const auto& [n, used, tokens] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {65, 8, 5}, {300, 3, 33}}) {
    for (const Fill fill : quant::kAllFills) {
      Tensor x(Type::kF32, {n, used, tokens}, 4), weights(Type::kF32, {used, tokens}, 8);
      Tensor want(Type::kF32, {n, tokens}, 12);
      x.FillWith(fill, &random);
      weights.FillWith(Fill::kUniform, &random);
      Bytes in = OperandOf(x, 8), w = OperandOf(weights), out = OperandOf(want, 4);
      reference::MoeCombine(x, weights, want, AllRows(want));
      const absl::Status status = runner_->Run(
          {MoeCombineRun(ViewOf(x, 8), ViewOf(weights), ViewOf(want, 4), 64)}, {&in, &w, &out});
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(Difference(out, OperandOf(want, 4)), "") << n;
    }
  }
}

}  // namespace
}  // namespace trine::vulkan
