#include "kernels/cpu/map_row.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

using reference::ActivationKind;

template <typename Function>
void ForEach(const View& x, const View& dst, Range rows, Function function) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    MapRow(FloatsAt(x, r), FloatsAt(dst, r), dst.dims[0], function);
  }
}

// The row of b that meets a row of the destination.
const float* BroadcastRow(const View& b, const RowPosition& at) {
  return FloatsAt(b, b.dims[1] == 1 ? 0 : at.i1, b.dims[2] == 1 ? 0 : at.i2,
                  b.dims[3] == 1 ? 0 : at.i3);
}

template <typename Function>
void ForEachPair(const View& a, const View& b, const View& dst, Range rows, Function function) {
  const bool one_value = b.dims[0] == 1;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* a_row = FloatsAt(a, r);
    const float* b_row = BroadcastRow(b, PositionOfRow(dst, r));
    float* to = FloatsAt(dst, r);
    if (one_value) {
      const auto value = Splat<kRowLanes>(*b_row);
      MapRow(a_row, to, dst.dims[0], [&](F32<kRowLanes> x) { return function(x, value); });
    } else {
      MapRows(a_row, b_row, to, dst.dims[0], function);
    }
  }
}

}  // namespace

void Add(const View& a, const View& b, const View& dst, Range rows) {
  ForEachPair(a, b, dst, rows, [](auto x, auto y) { return Canon(x + y); });
}

void Mul(const View& a, const View& b, const View& dst, Range rows) {
  ForEachPair(a, b, dst, rows, [](auto x, auto y) { return Canon(x * y); });
}

void Scale(const View& x, float scale, const View& dst, Range rows) {
  const auto factor = Splat<kRowLanes>(scale);
  ForEach(x, dst, rows, [=](auto value) { return Canon(value * factor); });
}

void Softcap(const View& x, float cap, const View& dst, Range rows) {
  const auto caps = Splat<kRowLanes>(cap);
  const auto inverses = Recip(caps);
  ForEach(x, dst, rows, [=](auto value) { return SoftcapValue(value, caps, inverses); });
}

void Activation(const View& x, ActivationKind kind, const View& dst, Range rows) {
  switch (kind) {
    case ActivationKind::kSilu:
      return ForEach(x, dst, rows, [](auto value) { return Silu(value); });
    case ActivationKind::kGelu:
      return ForEach(x, dst, rows, [](auto value) { return Gelu(value); });
    case ActivationKind::kRelu:
      return ForEach(x, dst, rows, [](auto value) { return Relu(value); });
    case ActivationKind::kTanh:
      return ForEach(x, dst, rows, [](auto value) { return Tanh(value); });
  }
}

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
