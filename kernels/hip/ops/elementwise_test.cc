#include <functional>

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
using testing::RunLaunch;
using Values = reference::Tensor;  // on the host; a Tensor is on the device

struct ViewShape {
  int64_t dims[4];
  int64_t padding;  // bytes after each row
  size_t offset;
};

constexpr ViewShape kShapes[] = {
    {{1, 1, 1, 1}, 0, 0},     {{17, 5, 1, 1}, 0, 4},   {{64, 3, 2, 1}, 16, 0},
    {{255, 3, 11, 1}, 4, 16}, {{1032, 1, 2, 1}, 0, 8}, {{5, 3, 2, 4}, 4, 12},
    {{1, 7, 3, 1}, 8, 0},     {{516, 2, 3, 1}, 0, 16}, {{4, 0, 3, 1}, 0, 0},
    {{0, 2, 1, 1}, 0, 0},
};

Values Make(const ViewShape& s) {
  return Values(Type::kF32, {s.dims[0], s.dims[1], s.dims[2], s.dims[3]}, s.padding);
}

using Unary = std::function<void(const View&, const View&)>;
using UnaryLaunch = std::function<Launch(const Tensor&, const Tensor&)>;

// Checks x -> y, apart and in place.
void CheckUnary(const Unary& op, const UnaryLaunch& launch) {
  Random random(7);
  for (const ViewShape& s : kShapes) {
    for (const Fill fill : {Fill::kUniform, Fill::kWide, Fill::kTiny}) {
      Values x = Make(s), want = Make(s);
      x.FillWith(fill, &random);
      op(x, want);
      testing::UnderEverySchedule([&] {
        const OnDevice in(x, s.offset), out(Make(s), 16);
        RunLaunch(launch(in.tensor(), out.tensor()));
        ASSERT_EQ(out.Bytes(), BytesIn(want)) << s.dims[0];
        ASSERT_EQ(in.Bytes(), BytesIn(x));
        RunLaunch(launch(in.tensor(), in.tensor()));
        ASSERT_EQ(in.Bytes(), BytesIn(want)) << s.dims[0] << " in place";
      });
    }
  }
}

using Binary = std::function<void(const View&, const View&, const View&)>;
using BinaryLaunch = std::function<Launch(const Tensor&, const Tensor&, const Tensor&)>;

void CheckOnce(const Binary& op, const BinaryLaunch& launch, const Values& a, const Values& b,
               const Values& want, size_t offset) {
  op(a, b, want);
  testing::UnderEverySchedule([&] {
    const OnDevice in_a(a, offset), in_b(b, offset);
    View to = want.view();
    std::vector<std::byte> nothing(testing::BytesOf(to));
    to.data = nothing.data();
    const OnDevice out(to, offset);
    RunLaunch(launch(in_a.tensor(), in_b.tensor(), out.tensor()));
    ASSERT_EQ(out.Bytes(), BytesIn(want)) << want.view().dims[0];
    if (testing::BytesOf(a) != testing::BytesOf(want)) return;
    RunLaunch(launch(in_a.tensor(), in_b.tensor(), in_a.tensor()));
    ASSERT_EQ(in_a.Bytes(), BytesIn(want)) << want.view().dims[0] << " in place";
  });
}

void CheckBinary(const Binary& op, const BinaryLaunch& launch) {
  Random random(8);
  for (const ViewShape& s : kShapes) {
    for (const Fill fill : {Fill::kUniform, Fill::kWide, Fill::kTiny}) {
      Values a = Make(s), b = Make(s), want = Make(s);
      a.FillWith(fill, &random);
      b.FillWith(fill, &random);
      CheckOnce(op, launch, a, b, want, s.offset);
    }
  }
}

const Binary kAdd = [](const View& a, const View& b, const View& y) {
  reference::Add(a, b, y, AllRows(y));
};
const Binary kMul = [](const View& a, const View& b, const View& y) {
  reference::Mul(a, b, y, AllRows(y));
};

TEST(HipElementwise, Scale) {
  CheckUnary([](const View& x, const View& y) { reference::Scale(x, -0.7071068f, y, AllRows(y)); },
             [](const Tensor& x, const Tensor& y) { return ScaleLaunch(x, -0.7071068f, y); });
}

TEST(HipElementwise, Softcap) {
  for (const float cap : {30.0f, 0.001f}) {
    CheckUnary([=](const View& x, const View& y) { reference::Softcap(x, cap, y, AllRows(y)); },
               [=](const Tensor& x, const Tensor& y) { return SoftcapLaunch(x, cap, y); });
  }
}

// Covers the arguments where exp, the clamps and the polynomials change, and all between.
TEST(HipElementwise, ActivationsOverTheirDomain) {
  using reference::ActivationKind;
  constexpr int64_t kSteps = 3'000;
  Values x(Type::kF32, {2 * kSteps + 200}), want(Type::kF32, {2 * kSteps + 200});
  float* at = x.Row(0);
  for (int64_t i = -kSteps; i < kSteps; ++i) *at++ = quant::Canon(static_cast<float>(i) * 0.018f);
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
    testing::UnderEverySchedule([&] {
      const OnDevice in(x);
      RunLaunch(ActivationLaunch(in.tensor(), kind, in.tensor()));
      ASSERT_EQ(in.Bytes(), BytesIn(want)) << static_cast<int>(kind);
    });
  }
}

TEST(HipElementwise, Add) { CheckBinary(kAdd, AddLaunch); }
TEST(HipElementwise, Mul) { CheckBinary(kMul, MulLaunch); }

TEST(HipElementwise, AddAndMulRepeatB) {
  Random random(9);
  for (const int64_t n : {33, 64}) {
    for (const std::initializer_list<int64_t>& dims :
         {std::initializer_list<int64_t>{n, 1, 1}, {1, 3, 1}, {1, 1, 1}, {n, 1, 7}, {1, 3, 7}}) {
      Values a(Type::kF32, {n, 3, 7}), b(Type::kF32, dims), want(Type::kF32, {n, 3, 7});
      a.FillWith(Fill::kUniform, &random);
      b.FillWith(Fill::kUniform, &random);
      for (const size_t offset : {0, 4}) {
        CheckOnce(kAdd, AddLaunch, a, b, want, offset);
        CheckOnce(kMul, MulLaunch, a, b, want, offset);
      }
    }
  }
}

TEST(HipElementwise, Glu) {
  using reference::GluKind;
  for (const GluKind kind : {GluKind::kSilu, GluKind::kGelu, GluKind::kClampedSwiglu}) {
    const reference::GluParams params = {kind, 1.702f, 7.0f};
    CheckBinary([=](const View& a, const View& b,
                    const View& y) { reference::Glu(a, b, params, y, AllRows(y)); },
                [=](const Tensor& a, const Tensor& b, const Tensor& y) {
                  return GluLaunch(a, b, params, y, {});
                });
  }
}

TEST(HipElementwise, GluAsQuantisedActivations) {
  using reference::GluKind;
  Random random(11);
  enum Where { kOut, kNotWritten, kInPlace };
  for (const int64_t n : {32, 224, 1024}) {
    for (const int64_t padding : {0, 4}) {
      for (const GluKind kind : {GluKind::kSilu, GluKind::kGelu, GluKind::kClampedSwiglu}) {
        const reference::GluParams params = {kind, 1.702f, 7.0f};
        Values gate(Type::kF32, {n, 3, 2}, padding), up(Type::kF32, {n, 3, 2}, 2 * padding);
        Values want(Type::kF32, {n, 3, 2}, padding);
        gate.FillWith(n == 224 ? Fill::kTiny : Fill::kUniform, &random);
        up.FillWith(Fill::kOutlier, &random);
        reference::Glu(gate, up, params, want, AllRows(want));
        testing::UnderEverySchedule([&] {
          for (const Where where : {kOut, kNotWritten, kInPlace}) {
            const OnDevice in(gate), other(up), out(Values(Type::kF32, {n, 3, 2}, padding));
            const testing::QuantizedOnDevice quantized(n / 32, 6);
            const Tensor y = where == kOut       ? out.tensor()
                             : where == kInPlace ? in.tensor()
                                                 : Tensor{};
            RunLaunch(GluLaunch(in.tensor(), other.tensor(), params, y, quantized.columns()));
            ASSERT_EQ(quantized.Wrong(want), "") << n;
            if (where == kOut) {
              ASSERT_EQ(out.Bytes(), BytesIn(want)) << n;
            }
            ASSERT_EQ(in.Bytes(), BytesIn(where == kInPlace ? want : gate)) << n;
          }
        });
      }
    }
  }
}

// Work beyond a grid's end is done in strides, along rows and across them.
TEST(HipElementwise, MoreWorkThanAGridHas) {
  Tensor many;
  many.dims = {130, int64_t{kMaxGridYZ} + 1, 1, 1};
  many.strides = {4, 1024, 0, 0};
  EXPECT_EQ(ScaleLaunch(many, 3.0f, many).grid.y, kMaxGridYZ);
  Random random(10);
  Values x(Type::kF32, {601, 9}, 4), want(Type::kF32, {601, 9}, 4);
  x.FillWith(Fill::kWide, &random);
  reference::Scale(x, 3.0f, want, AllRows(want));
  testing::UnderEverySchedule([&] {
    const OnDevice in(x);
    Launch launch = ScaleLaunch(in.tensor(), 3.0f, in.tensor());
    EXPECT_EQ(launch.grid, (Dim{3, 9}));
    launch.grid = {2, 4};
    RunLaunch(launch);
    ASSERT_EQ(in.Bytes(), BytesIn(want));
  });
}

void CheckCopy(const Values& x, const Values& want, size_t x_offset, size_t y_offset) {
  std::vector<std::byte> before(testing::BytesOf(want));
  View empty = want.view();
  empty.data = before.data();
  reference::Copy(x, want, AllRows(want));
  testing::UnderEverySchedule([&] {
    const OnDevice in(x, x_offset), out(empty, y_offset);
    RunLaunch(CopyLaunch(in.tensor(), out.tensor()));
    ASSERT_EQ(out.Bytes(), BytesIn(want))
        << quant::Traits(x.view().type).name << " to " << quant::Traits(want.view().type).name;
  });
}

TEST(HipElementwise, CopyConvertsAmongFloats) {
  Random random(1);
  for (const Type from : {Type::kF32, Type::kF16, Type::kBF16}) {
    for (const Type to : {Type::kF32, Type::kF16, Type::kBF16}) {
      for (const auto& [n, padding] : {std::pair<int64_t, int64_t>{1, 0}, {17, 0}, {300, 8}}) {
        Values x(from, {n, 3, 5}, padding), want(to, {n, 3, 5}, 2 * padding);
        const size_t size = from == Type::kF32 ? 4 : 2;
        for (int64_t r = 0; r < reference::Rows(x); ++r) {
          for (int64_t i = 0; i < n; ++i) {  // any bits, numbers or not
            const auto bits = static_cast<uint32_t>(random.Next());
            std::memcpy(reference::RowAt(x.view(), r) + static_cast<size_t>(i) * size, &bits, size);
          }
        }
        CheckCopy(x, want, 4, 8);
      }
    }
  }
}

// Around the bounds of f16: the least denormal and its half, 65504, 65520, ties.
TEST(HipElementwise, CopyRoundsAtTheEdgesOfF16) {
  std::vector<uint32_t> edges;
  for (const uint32_t base : {0x33000000u, 0x33800000u, 0x38800000u, 0x477fe000u, 0x477ff000u,
                              0x387fe000u, 0x3f801000u, 0x3f803000u, 0x7f800000u, 0x00800000u}) {
    for (int32_t near = -2; near <= 2; ++near) {
      edges.push_back(base + static_cast<uint32_t>(near));
      edges.push_back((base + static_cast<uint32_t>(near)) | 0x80000000u);
    }
  }
  for (const Type to : {Type::kF16, Type::kBF16}) {
    Values x(Type::kF32, {static_cast<int64_t>(edges.size())});
    Values want(to, {static_cast<int64_t>(edges.size())});
    std::memcpy(x.Row(0), edges.data(), edges.size() * 4);
    CheckCopy(x, want, 0, 0);
  }
}

TEST(HipElementwise, CopyMovesEveryType) {
  Random random(2);
  for (const Type type : quant::kAllTypes) {
    const int64_t block = quant::Traits(type).block_values;
    Values x(type, {3 * block, 3, 2}), want(type, {3 * block, 3, 2});
    for (int64_t r = 0; r < reference::Rows(x); ++r) {
      const auto row = quant::RandomWeights(type, 3 * block, true, &random);
      std::copy(row.begin(), row.end(), reference::RowAt(x.view(), r));
    }
    CheckCopy(x, want, 0, 0);
    CheckCopy(x, want, 4, 12);
  }
}

TEST(HipElementwise, CopyExchangesDimensions) {
  Random random(3);
  Values x(Type::kF32, {64, 3, 5}), want(Type::kF32, {64, 5, 3}, 4);
  x.FillWith(Fill::kUniform, &random);
  View exchanged = x.view();
  std::swap(exchanged.dims[1], exchanged.dims[2]);
  std::swap(exchanged.strides[1], exchanged.strides[2]);
  reference::Copy(exchanged, want, AllRows(want));
  testing::UnderEverySchedule([&] {
    const OnDevice in(x), out(Values(Type::kF32, {64, 5, 3}, 4));
    Tensor src = in.tensor();
    std::swap(src.dims[1], src.dims[2]);
    std::swap(src.strides[1], src.strides[2]);
    RunLaunch(CopyLaunch(src, out.tensor()));
    ASSERT_EQ(out.Bytes(), BytesIn(want));
  });
}

}  // namespace
}  // namespace trine::hip
