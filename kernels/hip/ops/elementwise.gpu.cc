#include <algorithm>

#include "kernels/hip/gpu/device.h"
#include "kernels/hip/ops/ops.h"
#include "kernels/hip/ops/row_index.h"
#include "kernels/hip/ops/scalar_functions.h"
#include "kernels/hip/ops/walk.h"

namespace trine::hip {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kFloat = sizeof(float);

enum class UnaryKind { kScale, kSoftcap, kSilu, kGelu, kRelu, kTanh };
enum class BinaryKind { kAdd, kMul, kGlu };

struct UnaryArgs {
  Walk walk;
  Rows x, y;
  UnaryKind kind;
  float parameter, inverse;
};

struct BinaryArgs {
  Walk walk;
  Rows a, b, y;
  bool b_repeats;  // along a row: its first value stands for all
  BinaryKind kind;
  reference::GluParams glu;
};

template <int kUnit>
TRINE_DEVICE void Read(const float* from, float (&v)[kUnit]) {
  if constexpr (kUnit == 4) {
    const Float4 four = *reinterpret_cast<const Float4*>(from);
    v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
  } else {
    v[0] = *from;
  }
}

template <int kUnit>
TRINE_DEVICE void Write(const float (&v)[kUnit], float* to) {
  if constexpr (kUnit == 4) {
    *reinterpret_cast<Float4*>(to) = {v[0], v[1], v[2], v[3]};
  } else {
    *to = v[0];
  }
}

TRINE_DEVICE float Apply(float v, const UnaryArgs& args) {
  switch (args.kind) {
    case UnaryKind::kScale:
      return Canon(v * args.parameter);
    case UnaryKind::kSoftcap:
      return SoftcapValue(v, args.parameter, args.inverse);
    case UnaryKind::kSilu:
      return Silu(v);
    case UnaryKind::kGelu:
      return Gelu(v);
    case UnaryKind::kRelu:
      return v > 0.0f ? Canon(v) : 0.0f;
    case UnaryKind::kTanh:
      break;
  }
  return Tanh(v);
}

TRINE_DEVICE float Apply(float a, float b, const BinaryArgs& args) {
  switch (args.kind) {
    case BinaryKind::kAdd:
      return Canon(a + b);
    case BinaryKind::kMul:
      return Canon(a * b);
    case BinaryKind::kGlu:
      break;
  }
  return GluValue(a, b, args.glu);
}

// Calls unit(row index, unit number) for all units of this thread.
template <class Unit>
TRINE_DEVICE void ForEachUnit(const Walk& walk, const Unit& unit) {
  const uint32_t along = BlockSizeX(), across = kThreads / along;
  const int64_t row_step = static_cast<int64_t>(GridY()) * across;
  const int64_t unit_step = static_cast<int64_t>(GridX()) * along;
  for (int64_t row = static_cast<int64_t>(BlockY()) * across + ThreadY(); row < walk.rows;
       row += row_step) {
    const RowIndex index = IndexOfRow(row, walk.n1, walk.n2);
    for (int64_t i = static_cast<int64_t>(BlockX()) * along + ThreadX(); i < walk.units;
         i += unit_step) {
      unit(index, i);
    }
  }
}

template <int kUnit>
TRINE_KERNEL(kThreads)
UnaryKernel(UnaryArgs args) {
  BeginAfterEarlier();
  ForEachUnit(args.walk, [&](const RowIndex& row, int64_t i) {
    float v[kUnit];
    Read(RowAt<const float>(args.x, row) + i * kUnit, v);
    for (int c = 0; c < kUnit; ++c) v[c] = Apply(v[c], args);
    Write(v, RowAt<float>(args.y, row) + i * kUnit);
  });
}

template <int kUnit>
TRINE_KERNEL(kThreads)
BinaryKernel(BinaryArgs args) {
  BeginAfterEarlier();
  ForEachUnit(args.walk, [&](const RowIndex& row, int64_t i) {
    float a[kUnit], b[kUnit];
    Read(RowAt<const float>(args.a, row) + i * kUnit, a);
    const float* b_row = RowAt<const float>(args.b, row);
    if (args.b_repeats) {
      for (int c = 0; c < kUnit; ++c) b[c] = *b_row;
    } else {
      Read(b_row + i * kUnit, b);
    }
    for (int c = 0; c < kUnit; ++c) a[c] = Apply(a[c], b[c], args);
    Write(a, RowAt<float>(args.y, row) + i * kUnit);
  });
}

struct GluQuantizeArgs {
  Rows gate, up, y;
  int64_t n1, n2;
  int64_t words;  // groups of four values, all rows together
  reference::GluParams glu;
  QuantizedColumns to;
};

template <bool kAligned>
TRINE_DEVICE Float4 ReadFour(const float* from) {
  if constexpr (kAligned) return *reinterpret_cast<const Float4*>(from);
  return {from[0], from[1], from[2], from[3]};
}

template <bool kAligned>
TRINE_KERNEL(kThreads)
GluQuantizeKernel(GluQuantizeArgs args) {
  BeginAfterEarlier();
  const int64_t row_words = args.to.blocks * 8;
  const int64_t step = static_cast<int64_t>(GridX()) * kThreads;
  // All lanes of a group make the same number of rounds.
  const int64_t rounds = (args.words + step - 1) / step;
  for (int64_t round = 0; round < rounds; ++round) {
    const int64_t at = round * step + static_cast<int64_t>(BlockX()) * kThreads + ThreadX();
    const bool ours = at < args.words;
    const int64_t column = ours ? Quotient(at, row_words) : 0;
    const int64_t word = ours ? at - column * row_words : 0;
    const RowIndex row = IndexOfRow(column, args.n1, args.n2);
    const Float4 g = ReadFour<kAligned>(RowAt<const float>(args.gate, row) + word * 4);
    const Float4 u = ReadFour<kAligned>(RowAt<const float>(args.up, row) + word * 4);
    const Float4 v = {GluValue(g.x, u.x, args.glu), GluValue(g.y, u.y, args.glu),
                      GluValue(g.z, u.z, args.glu), GluValue(g.w, u.w, args.glu)};
    if (ours && args.y.data != nullptr) {
      float* y = RowAt<float>(args.y, row) + word * 4;
      if constexpr (kAligned) {
        *reinterpret_cast<Float4*>(y) = v;
      } else {
        y[0] = v.x, y[1] = v.y, y[2] = v.z, y[3] = v.w;
      }
    }
    QuantizeBlock(args.to, v, column, word / 8, static_cast<uint32_t>(word % 8), ours);
  }
}

Launch UnaryLaunch(UnaryKind kind, Tensor x, float parameter, Tensor y) {
  std::array<int64_t, 4> dims = y.dims;
  Flatten(&dims, {{&x, kFloat}, {&y, kFloat}});
  const bool wide = dims[0] % 4 == 0 && RowsAligned(x, 16) && RowsAligned(y, 16);
  UnaryArgs args;
  args.walk = WalkOf(dims, wide ? 4 : 1);
  args.x = RowsOf(x);
  args.y = RowsOf(y);
  args.kind = kind;
  args.parameter = parameter;
  args.inverse = quant::Recip(parameter);
  const WalkShape shape = ShapeOf(args.walk, kThreads);
  return MakeLaunch(wide ? UnaryKernel<4> : UnaryKernel<1>, shape.grid, shape.block, args);
}

Launch BinaryLaunch(BinaryKind kind, Tensor a, Tensor b, const reference::GluParams& glu,
                    Tensor y) {
  std::array<int64_t, 4> dims = y.dims;
  for (size_t i = 1; i < 4; ++i) {
    if (b.dims[i] == 1) b.strides[i] = 0;
  }
  const bool b_repeats = b.dims[0] == 1;
  Flatten(&dims, {{&a, kFloat}, {&b, b_repeats ? 0 : kFloat}, {&y, kFloat}});
  const bool wide = dims[0] % 4 == 0 && RowsAligned(a, 16) && RowsAligned(y, 16) &&
                    (b_repeats || RowsAligned(b, 16));
  BinaryArgs args;
  args.walk = WalkOf(dims, wide ? 4 : 1);
  args.a = RowsOf(a);
  args.b = RowsOf(b);
  args.y = RowsOf(y);
  args.b_repeats = b_repeats;
  args.kind = kind;
  args.glu = glu;
  const WalkShape shape = ShapeOf(args.walk, kThreads);
  return MakeLaunch(wide ? BinaryKernel<4> : BinaryKernel<1>, shape.grid, shape.block, args);
}

constexpr int kQuantizeThreads = 128;

struct QuantizeArgs {
  Rows x;
  int64_t n1, n2;  // dimensions 1 and 2 of x
  int64_t words;   // groups of four values, all columns together
  QuantizedColumns to;
};

TRINE_KERNEL(kQuantizeThreads) QuantizeKernel(QuantizeArgs args) {
  BeginAfterEarlier();
  const int64_t words = args.to.blocks * 8;  // in a column
  const int64_t step = static_cast<int64_t>(GridX()) * kQuantizeThreads;
  // All lanes of a group make the same number of rounds.
  const int64_t rounds = (args.words + step - 1) / step;
  for (int64_t round = 0; round < rounds; ++round) {
    const int64_t at = round * step + static_cast<int64_t>(BlockX()) * kQuantizeThreads + ThreadX();
    const bool ours = at < args.words;
    const int64_t column = ours ? at / words : 0, word = ours ? at % words : 0;
    const int64_t i1 = column % args.n1, i2 = column / args.n1 % args.n2;
    const int64_t i3 = column / args.n1 / args.n2;
    const auto* row = reinterpret_cast<const float*>(
        args.x.data + i1 * args.x.strides[0] + i2 * args.x.strides[1] + i3 * args.x.strides[2]);
    const float* v = row + word * 4;
    QuantizeBlock(args.to, Float4{v[0], v[1], v[2], v[3]}, column, word / 8,
                  static_cast<uint32_t>(at % 8), ours);
  }
}

}  // namespace

Launch AddLaunch(const Tensor& a, const Tensor& b, const Tensor& y) {
  return BinaryLaunch(BinaryKind::kAdd, a, b, {}, y);
}

Launch MulLaunch(const Tensor& a, const Tensor& b, const Tensor& y) {
  return BinaryLaunch(BinaryKind::kMul, a, b, {}, y);
}

Launch ScaleLaunch(const Tensor& x, float scale, const Tensor& y) {
  return UnaryLaunch(UnaryKind::kScale, x, scale, y);
}

Launch SoftcapLaunch(const Tensor& x, float cap, const Tensor& y) {
  return UnaryLaunch(UnaryKind::kSoftcap, x, cap, y);
}

Launch ActivationLaunch(const Tensor& x, reference::ActivationKind kind, const Tensor& y) {
  UnaryKind unary = UnaryKind::kTanh;
  if (kind == reference::ActivationKind::kSilu) unary = UnaryKind::kSilu;
  if (kind == reference::ActivationKind::kGelu) unary = UnaryKind::kGelu;
  if (kind == reference::ActivationKind::kRelu) unary = UnaryKind::kRelu;
  return UnaryLaunch(unary, x, 0.0f, y);
}

Launch GluLaunch(const Tensor& gate, const Tensor& up, const reference::GluParams& params,
                 const Tensor& y, const QuantizedColumns& quantized) {
  if (!quantized.present()) return BinaryLaunch(BinaryKind::kGlu, gate, up, params, y);
  GluQuantizeArgs args;
  args.gate = RowsOf(gate);
  args.up = RowsOf(up);
  args.y = RowsOf(y);
  args.n1 = gate.dims[1];
  args.n2 = gate.dims[2];
  args.words = gate.elements() / 4;
  args.glu = params;
  args.to = quantized;
  const bool aligned =
      RowsAligned(gate, 16) && RowsAligned(up, 16) && (!y.present() || RowsAligned(y, 16));
  const int64_t blocks = std::min<int64_t>((args.words + kThreads - 1) / kThreads, 0x7fffffff);
  return MakeLaunch(aligned ? GluQuantizeKernel<true> : GluQuantizeKernel<false>,
                    {static_cast<uint32_t>(blocks)}, {kThreads}, args);
}

Launch QuantizeLaunch(const Tensor& x, const QuantizedColumns& to) {
  QuantizeArgs args;
  args.x = RowsOf(x);
  args.n1 = x.dims[1];
  args.n2 = x.dims[2];
  args.words = x.elements() / 4;
  args.to = to;
  const int64_t blocks = (args.words + kQuantizeThreads - 1) / kQuantizeThreads;
  return MakeLaunch(QuantizeKernel, {static_cast<uint32_t>(std::min<int64_t>(blocks, 65535))},
                    {kQuantizeThreads}, args);
}

}  // namespace trine::hip
