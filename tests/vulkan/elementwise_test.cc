#include <algorithm>
#include <functional>

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

struct ViewShape {
  int64_t dims[4];
  int64_t padding;  // bytes after each row
  uint64_t offset;
};

constexpr ViewShape kShapes[] = {
    {{1, 1, 1, 1}, 0, 0},     {{17, 5, 1, 1}, 0, 4},   {{64, 3, 2, 1}, 12, 0},
    {{255, 3, 11, 1}, 4, 16}, {{1030, 1, 2, 1}, 0, 8}, {{5, 3, 2, 4}, 4, 12},
    {{1, 7, 3, 1}, 8, 0},     {{513, 2, 3, 1}, 0, 0},
};

class ElementwiseShaderTest : public ShaderTest {
 protected:
  Tensor Make(const ViewShape& s) {
    return Tensor(Type::kF32, {s.dims[0], s.dims[1], s.dims[2], s.dims[3]}, s.padding);
  }

  // Checks x -> y, separate and in place, for every shape and kind of values.
  void CheckUnary(const std::function<void(const Tensor&, const Tensor&)>& reference_op,
                  const std::function<KernelRun(const TensorView&, const TensorView&)>& run) {
    Random random(7);
    for (const ViewShape& s : kShapes) {
      for (const Fill fill : quant::kAllFills) {
        Tensor x = Make(s), want = Make(s);
        x.FillWith(fill, &random);
        Bytes in = OperandOf(x, s.offset), out = OperandOf(want, 8);
        const Bytes before = in;
        reference_op(x, want);
        const TensorView x_view = ViewOf(x, s.offset);
        absl::Status status = runner_->Run({run(x_view, ViewOf(want, 8))}, {&in, &out});
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(Difference(out, OperandOf(want, 8)), "") << s.dims[0];
        EXPECT_EQ(Difference(in, before), "");
        status = runner_->Run({run(x_view, x_view)}, {&in, &in});
        ASSERT_TRUE(status.ok()) << status;
        reference_op(x, x);
        EXPECT_EQ(Difference(in, OperandOf(x, s.offset)), "") << "in place";
      }
    }
  }

  using BinaryRun =
      std::function<KernelRun(const TensorView&, const TensorView&, const TensorView&)>;
  void CheckBinary(
      const std::function<void(const Tensor&, const Tensor&, const Tensor&)>& reference_op,
      const BinaryRun& run) {
    Random random(8);
    for (const ViewShape& s : kShapes) {
      for (const Fill fill : quant::kAllFills) {
        Tensor a = Make(s), b = Make(s), want = Make(s);
        a.FillWith(fill, &random);
        b.FillWith(fill, &random);
        reference_op(a, b, want);
        Check(run, a, b, want, s.offset);
      }
    }
  }

  void Check(const BinaryRun& run, const Tensor& a, const Tensor& b, const Tensor& want,
             uint64_t offset) {
    Bytes in_a = OperandOf(a, offset), in_b = OperandOf(b, 4);
    Bytes out(want.bytes().size());  // gaps between rows stay 0
    const absl::Status status =
        runner_->Run({run(ViewOf(a, offset), ViewOf(b, 4), ViewOf(want))}, {&in_a, &in_b, &out});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Difference(out, OperandOf(want)), "") << want.view().dims[0];
  }
};

TEST_F(ElementwiseShaderTest, Scale) {
  for (const uint32_t workgroup : {32u, 256u}) {
    CheckUnary(
        [](const Tensor& x, const Tensor& y) { reference::Scale(x, -0.7071068f, y, AllRows(y)); },
        [=](const TensorView& x, const TensorView& y) {
          return ScaleRun(x, -0.7071068f, y, workgroup);
        });
  }
}

TEST_F(ElementwiseShaderTest, Softcap) {
  for (const float cap : {30.0f, 0.001f}) {
    CheckUnary([=](const Tensor& x, const Tensor& y) { reference::Softcap(x, cap, y, AllRows(y)); },
               [=](const TensorView& x, const TensorView& y) { return SoftcapRun(x, cap, y, 64); });
  }
}

TEST_F(ElementwiseShaderTest, Activations) {
  using reference::ActivationKind;
  for (const ActivationKind kind : {ActivationKind::kSilu, ActivationKind::kGelu,
                                    ActivationKind::kRelu, ActivationKind::kTanh}) {
    CheckUnary(
        [=](const Tensor& x, const Tensor& y) { reference::Activation(x, kind, y, AllRows(y)); },
        [=](const TensorView& x, const TensorView& y) { return ActivationRun(x, kind, y, 128); });
  }
}

// Covers the points where exp, the clamps and the polynomials change over, and all between.
TEST_F(ElementwiseShaderTest, ActivationsOverTheirDomain) {
  using reference::ActivationKind;
  constexpr int64_t kSteps = 60'000;
  Tensor x(Type::kF32, {2 * kSteps + 200}), want(Type::kF32, {2 * kSteps + 200});
  float* at = x.Row(0);
  for (int64_t i = -kSteps; i < kSteps; ++i) *at++ = quant::Canon(static_cast<float>(i) * 0.0009f);
  for (const float edge : {44.0f, 22.0f, 16.0f, 0x1p-49f}) {
    for (int32_t near = -12; near < 13; ++near) {
      const uint32_t bits = quant::Bits(edge) + static_cast<uint32_t>(near);
      *at++ = quant::Canon(quant::FromBits(bits));
      *at++ = quant::Canon(quant::FromBits(bits | 0x80000000u));
    }
  }
  for (const ActivationKind kind : {ActivationKind::kSilu, ActivationKind::kGelu,
                                    ActivationKind::kRelu, ActivationKind::kTanh}) {
    reference::Activation(x, kind, want, AllRows(want));
    Bytes in = OperandOf(x), out(in.size());
    const absl::Status status =
        runner_->Run({ActivationRun(ViewOf(x), kind, ViewOf(want), 256)}, {&in, &out});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Difference(out, OperandOf(want)), "");
  }
}

TEST_F(ElementwiseShaderTest, Add) {
  CheckBinary([](const Tensor& a, const Tensor& b,
                 const Tensor& y) { reference::Add(a, b, y, AllRows(y)); },
              [](const TensorView& a, const TensorView& b, const TensorView& y) {
                return AddRun(a, b, y, 256);
              });
}

TEST_F(ElementwiseShaderTest, Mul) {
  CheckBinary([](const Tensor& a, const Tensor& b,
                 const Tensor& y) { reference::Mul(a, b, y, AllRows(y)); },
              [](const TensorView& a, const TensorView& b, const TensorView& y) {
                return MulRun(a, b, y, 64);
              });
}

TEST_F(ElementwiseShaderTest, AddAndMulRepeatB) {
  Random random(9);
  for (const std::initializer_list<int64_t>& dims :
       {std::initializer_list<int64_t>{33, 1, 1}, {1, 3, 1}, {1, 1, 1}, {33, 1, 7}, {1, 3, 7}}) {
    Tensor a(Type::kF32, {33, 3, 7}), b(Type::kF32, dims), want(Type::kF32, {33, 3, 7});
    a.FillWith(Fill::kUniform, &random);
    b.FillWith(Fill::kUniform, &random);
    reference::Add(a, b, want, AllRows(want));
    Check([](const TensorView& a, const TensorView& b,
             const TensorView& y) { return AddRun(a, b, y, 64); },
          a, b, want, 0);
    reference::Mul(a, b, want, AllRows(want));
    Check([](const TensorView& a, const TensorView& b,
             const TensorView& y) { return MulRun(a, b, y, 64); },
          a, b, want, 16);
  }
}

TEST_F(ElementwiseShaderTest, Glu) {
  using reference::GluKind;
  for (const GluKind kind : {GluKind::kSilu, GluKind::kGelu, GluKind::kClampedSwiglu}) {
    const reference::GluParams params = {kind, 1.702f, 7.0f};
    CheckBinary([=](const Tensor& a, const Tensor& b,
                    const Tensor& y) { reference::Glu(a, b, params, y, AllRows(y)); },
                [=](const TensorView& a, const TensorView& b, const TensorView& y) {
                  return GluRun(a, b, params, y, 256);
                });
  }
}

TEST_F(ElementwiseShaderTest, GluAsQuantisedActivations) {
  using reference::GluKind;
  Random random(11);
  for (const int64_t n : {32, 224, 2048}) {
    for (const GluKind kind : {GluKind::kSilu, GluKind::kGelu, GluKind::kClampedSwiglu}) {
      for (const Fill fill : quant::kAllFills) {
        const reference::GluParams params = {kind, 1.702f, 7.0f};
        Tensor gate(Type::kF32, {n, 3, 2}, 4), up(Type::kF32, {n, 3, 2}, 8);
        Tensor want(Type::kF32, {n, 3, 2}, 4);
        gate.FillWith(fill, &random);
        up.FillWith(Fill::kUniform, &random);
        const Bytes gates = OperandOf(gate, 4), before = OperandOf(want, 4);
        Bytes ups = OperandOf(up, 12);
        reference::Glu(gate, up, params, want, AllRows(want));
        enum { kOut, kNotWritten, kInPlace };
        for (const int where : {kOut, kNotWritten, kInPlace}) {
          Bytes in = gates, out = before, q(16 + QuantizedBytes(n, 6));
          KernelRun run = GluQuantizeRun(ViewOf(gate, 4), ViewOf(up, 12), params, ViewOf(want, 4),
                                         where != kNotWritten, 16);
          std::replace(run.operands.begin(), run.operands.end(), kScratchOperand, 3u);
          Bytes* to = where == kInPlace ? &in : &out;
          const absl::Status status = runner_->Run({run}, {&in, &ups, to, &q});
          ASSERT_TRUE(status.ok()) << status;
          EXPECT_EQ(WrongColumns(q, 16, want), "") << n;
          EXPECT_EQ(Difference(*to, where == kNotWritten ? before : OperandOf(want, 4)), "") << n;
        }
      }
    }
  }
}

// More workgroups than a device takes: each goes on in strides.
TEST_F(ElementwiseShaderTest, MoreWorkThanWorkgroups) {
  Random random(10);
  Tensor x(Type::kF32, {3'000'001}), want(Type::kF32, {3'000'001});
  x.FillWith(Fill::kWide, &random);
  reference::Scale(x, 3.0f, want, AllRows(want));
  KernelRun run = ScaleRun(ViewOf(x), 3.0f, ViewOf(want), 32);
  EXPECT_EQ(run.groups[0], kMaxGroups);
  Bytes in = OperandOf(x), out(in.size());
  const absl::Status status = runner_->Run({run}, {&in, &out});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Difference(out, OperandOf(want)), "");
}

}  // namespace
}  // namespace trine::vulkan
