#include "kernels/reference/ops.h"
#include "kernels/vulkan/runs/simple.h"
#include "tests/vulkan/quantized_columns.h"
#include "tests/vulkan/shader_runner.h"

namespace trine::vulkan {
namespace {

using quant::Fill;
using reference::AllRows;
using reference::Random;
using reference::Tensor;
using reference::Type;

constexpr int64_t kWidths[] = {1, 17, 32, 255, 896, 4099};

class NormShaderTest : public ShaderTest {
 protected:
  // `operands` by NormOperand; those that a run does not have may be anything.
  void Run(const Norm& norm, const std::vector<Bytes*>& operands, uint32_t workgroup) {
    const absl::Status status = runner_->Run({NormRun(norm, workgroup)}, operands);
    ASSERT_TRUE(status.ok()) << status;
  }
};

TEST_F(NormShaderTest, RmsNorm) {
  Random random(1);
  for (const int64_t n : kWidths) {
    for (const Fill fill : quant::kAllFills) {
      for (const bool weighted : {false, true}) {
        Tensor x(Type::kF32, {n, 2, 3}, 12), weight(Type::kF32, {n}), want(Type::kF32, {n, 2, 3});
        x.FillWith(fill, &random);
        weight.FillWith(Fill::kUniform, &random);
        Bytes in = OperandOf(x, 4), w = OperandOf(weight, 8), out = OperandOf(want), none(4);
        const reference::View* reference_weight = weighted ? &weight.view() : nullptr;
        reference::RmsNorm(x, reference_weight, 1e-6f, want, AllRows(want));
        Norm norm;
        norm.x = ViewOf(x, 4);
        if (weighted) norm.weight = ViewOf(weight, 8);
        norm.eps = 1e-6f;
        norm.y = ViewOf(want);
        const uint32_t workgroup = n == 255 ? 32 : NormWorkgroup(n, 1024);
        Run(norm, {&in, &w, &none, &none, &none, &out}, workgroup);
        EXPECT_EQ(Difference(out, OperandOf(want)), "") << n;
        // In place.
        reference::RmsNorm(x, reference_weight, 1e-6f, x, AllRows(x));
        norm.y = norm.x;
        Run(norm, {&in, &w, &none, &none, &none, &in}, workgroup);
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
  Bytes in = OperandOf(x), out(in.size()), none(4);
  Norm norm;
  norm.x = ViewOf(x);
  norm.eps = 1e-9f;
  norm.y = ViewOf(want);
  Run(norm, {&in, &none, &none, &none, &none, &out}, 32);
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
        Bytes out = OperandOf(want), none(4);
        const bool has_weight = (parts & 1) != 0, has_bias = (parts & 2) != 0;
        reference::LayerNorm(x, has_weight ? &weight.view() : nullptr,
                             has_bias ? &bias.view() : nullptr, 1e-5f, want, AllRows(want));
        Norm norm;
        norm.centred = true;
        norm.x = ViewOf(x);
        if (has_weight) norm.weight = ViewOf(weight, 4);
        if (has_bias) norm.bias = ViewOf(bias, 12);
        norm.eps = 1e-5f;
        norm.y = ViewOf(want);
        Run(norm, {&in, &w, &b, &none, &none, &out}, NormWorkgroup(n, 1024));
        EXPECT_EQ(Difference(out, OperandOf(want)), "") << n << " parts " << parts;
      }
    }
  }
}

// Checks sum, norm and quantised norm of each kind, with each choice of what is written and where.
class FusedNormTest : public NormShaderTest, public ::testing::WithParamInterface<bool> {
 protected:
  enum class Place { kApart, kSumInX, kYInAddend };

  void Check(int64_t n, Fill fill, bool writes_y, bool quantizes, Place place) {
    const bool centred = GetParam();
    Random random(static_cast<uint64_t>(n));
    Tensor x(Type::kF32, {n, 3, 2}, 4), addend(Type::kF32, {n, 3, 2}, 8), weight(Type::kF32, {n});
    Tensor sum(Type::kF32, {n, 3, 2}, place == Place::kSumInX ? 4 : 12);
    Tensor want(Type::kF32, {n, 3, 2}, place == Place::kYInAddend ? 8 : 0);
    for (Tensor* t : {&x, &addend}) t->FillWith(fill, &random);
    weight.FillWith(Fill::kUniform, &random);
    Norm norm;
    norm.centred = centred;
    norm.x = ViewOf(x, 4);
    norm.weight = ViewOf(weight);
    norm.eps = 1e-5f;
    norm.y = ViewOf(want, 8);
    norm.addend = ViewOf(addend, 8);
    norm.sum = ViewOf(sum, 4);
    norm.writes_y = writes_y;
    if (quantizes) norm.quantized = 32;
    Bytes in = OperandOf(x, 4), other = OperandOf(addend, 8), w = OperandOf(weight);
    Bytes sums = OperandOf(sum, 4), out = OperandOf(want, 8), none(4);
    const Bytes untouched = out;
    Bytes quantized(32 + QuantizedBytes(n, 6));
    reference::Add(x, addend, sum, AllRows(sum));
    if (centred) {
      reference::LayerNorm(sum, &weight.view(), nullptr, 1e-5f, want, AllRows(want));
    } else {
      reference::RmsNorm(sum, &weight.view(), 1e-5f, want, AllRows(want));
    }
    KernelRun run = NormRun(norm, NormWorkgroup(n, n == 896 ? 64 : 1024));
    for (uint32_t& operand : run.operands) {
      if (operand == kScratchOperand) operand = kNormY + 1;
    }
    Bytes* sums_at = place == Place::kSumInX ? &in : &sums;
    Bytes* out_at = place == Place::kYInAddend ? &other : &out;
    const absl::Status status =
        runner_->Run({run}, {&in, &w, &none, &other, sums_at, out_at, &quantized});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Difference(*sums_at, OperandOf(sum, 4)), "") << n;
    if (writes_y) {
      EXPECT_EQ(Difference(*out_at, OperandOf(want, 8)), "") << n;
    } else if (place != Place::kYInAddend) {
      EXPECT_EQ(Difference(out, untouched), "") << n;
    }
    if (quantizes) {
      EXPECT_EQ(WrongColumns(quantized, 32, want), "") << n;
    }
  }
};

TEST_P(FusedNormTest, AddsNormsAndQuantises) {
  for (const int64_t n : {32, 224, 896, 2048, 4128}) {
    for (const Fill fill : quant::kAllFills) Check(n, fill, false, true, Place::kApart);
  }
}

TEST_P(FusedNormTest, WritesWhatElseIsRead) {
  for (const Place place : {Place::kApart, Place::kSumInX, Place::kYInAddend}) {
    Check(896, Fill::kUniform, true, true, place);
    Check(1000, Fill::kUniform, true, false, place);
    Check(17, Fill::kWide, true, false, place);
    Check(896, Fill::kUniform, false, true, place);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FusedNormTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "layer_norm" : "rms_norm"; });

}  // namespace
}  // namespace trine::vulkan
