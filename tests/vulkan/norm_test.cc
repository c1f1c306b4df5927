#include "kernels/vulkan/norm.h"

#include "kernels/reference/ops.h"
#include "tests/vulkan/shader_runner.h"

namespace trine::vulkan {
namespace {

using quant::Fill;
using reference::AllRows;
using reference::Random;
using reference::Tensor;
using reference::Type;

constexpr int64_t kWidths[] = {1, 17, 32, 255, 896, 4099};

class NormShaderTest : public ShaderTest {};

TEST_F(NormShaderTest, RmsNorm) {
  Random random(1);
  for (const int64_t n : kWidths) {
    for (const Fill fill : quant::kAllFills) {
      for (const bool weighted : {false, true}) {
        Tensor x(Type::kF32, {n, 2, 3}, 12), weight(Type::kF32, {n}), want(Type::kF32, {n, 2, 3});
        x.FillWith(fill, &random);
        weight.FillWith(Fill::kUniform, &random);
        Bytes in = OperandOf(x, 4), w = OperandOf(weight, 8), out = OperandOf(want);
        const reference::View* reference_weight = weighted ? &weight.view() : nullptr;
        const TensorView x_view = ViewOf(x, 4), w_view = ViewOf(weight, 8);
        reference::RmsNorm(x, reference_weight, 1e-6f, want, AllRows(want));
        const TensorView* run_weight = weighted ? &w_view : nullptr;
        const uint32_t workgroup = n == 255 ? 32 : 256;
        absl::Status status = runner_->Run(
            {RmsNormRun(x_view, run_weight, 1e-6f, ViewOf(want), workgroup)}, {&in, &w, &out});
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(Difference(out, OperandOf(want)), "") << n;
        // In place.
        reference::RmsNorm(x, reference_weight, 1e-6f, x, AllRows(x));
        status = runner_->Run({RmsNormRun(x_view, run_weight, 1e-6f, x_view, workgroup)},
                              {&in, &w, &in});
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(Difference(in, OperandOf(x, 4)), "") << n << " in place";
      }
    }
  }
}

// A root and a reciprocal for each row; more rows than workgroups.
TEST_F(NormShaderTest, RmsNormOfManyRows) {
  Random random(3);
  Tensor x(Type::kF32, {1, 33'000, 2}), want(Type::kF32, {1, 33'000, 2});
  x.FillWith(Fill::kWide, &random);
  reference::RmsNorm(x, nullptr, 1e-9f, want, AllRows(want));
  Bytes in = OperandOf(x), w(4), out(in.size());
  const absl::Status status =
      runner_->Run({RmsNormRun(ViewOf(x), nullptr, 1e-9f, ViewOf(want), 32)}, {&in, &w, &out});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Difference(out, OperandOf(want)), "");
}

TEST_F(NormShaderTest, LayerNorm) {
  Random random(2);
  for (const int64_t n : kWidths) {
    for (const Fill fill : quant::kAllFills) {
      for (const int parts : {0, 1, 2, 3}) {
        Tensor x(Type::kF32, {n, 5}, 4), want(Type::kF32, {n, 5});
        Tensor weight(Type::kF32, {n}), bias(Type::kF32, {n});
        x.FillWith(fill, &random);
        weight.FillWith(Fill::kUniform, &random);
        bias.FillWith(Fill::kUniform, &random);
        Bytes in = OperandOf(x), w = OperandOf(weight, 4), b = OperandOf(bias, 12);
        Bytes out = OperandOf(want);
        const TensorView w_view = ViewOf(weight, 4), b_view = ViewOf(bias, 12);
        const bool has_weight = (parts & 1) != 0, has_bias = (parts & 2) != 0;
        reference::LayerNorm(x, has_weight ? &weight.view() : nullptr,
                             has_bias ? &bias.view() : nullptr, 1e-5f, want, AllRows(want));
        const KernelRun run = LayerNormRun(ViewOf(x), has_weight ? &w_view : nullptr,
                                           has_bias ? &b_view : nullptr, 1e-5f, ViewOf(want), 64);
        const absl::Status status = runner_->Run({run}, {&in, &w, &b, &out});
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(Difference(out, OperandOf(want)), "") << n << " parts " << parts;
      }
    }
  }
}

}  // namespace
}  // namespace trine::vulkan
