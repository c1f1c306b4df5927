#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"

namespace trine::reference {
namespace {

template <typename Function>
void ForEach(const View& x, const View& dst, Range rows, Function function) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* from = F32Row(x, r);
    float* to = F32Row(dst, r);
    for (int64_t i = 0; i < dst.dims[0]; ++i) to[i] = function(from[i]);
  }
}

// The row of b that meets row `index` of the destination.
const float* BroadcastRow(const View& b, const RowIndex& index) {
  return F32Row(b, b.dims[1] == 1 ? 0 : index.i1, b.dims[2] == 1 ? 0 : index.i2,
                b.dims[3] == 1 ? 0 : index.i3);
}

template <typename Function>
void ForEachPair(const View& a, const View& b, const View& dst, Range rows, Function function) {
  const int64_t b_step = b.dims[0] == 1 ? 0 : 1;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* a_row = F32Row(a, r);
    const float* b_row = BroadcastRow(b, IndexOfRow(dst, r));
    float* to = F32Row(dst, r);
    for (int64_t i = 0; i < dst.dims[0]; ++i) to[i] = function(a_row[i], b_row[i * b_step]);
  }
}

}  // namespace

void Add(const View& a, const View& b, const View& dst, Range rows) {
  ForEachPair(a, b, dst, rows, [](float x, float y) { return Canon(x + y); });
}

void Mul(const View& a, const View& b, const View& dst, Range rows) {
  ForEachPair(a, b, dst, rows, [](float x, float y) { return Canon(x * y); });
}

void Scale(const View& x, float scale, const View& dst, Range rows) {
  ForEach(x, dst, rows, [scale](float value) { return Canon(value * scale); });
}

void Softcap(const View& x, float cap, const View& dst, Range rows) {
  const float inverse_cap = Recip(cap);
  ForEach(x, dst, rows, [=](float value) { return SoftcapValue(value, cap, inverse_cap); });
}

void Activation(const View& x, ActivationKind kind, const View& dst, Range rows) {
  switch (kind) {
    case ActivationKind::kSilu:
      return ForEach(x, dst, rows, Silu);
    case ActivationKind::kGelu:
      return ForEach(x, dst, rows, Gelu);
    case ActivationKind::kRelu:
      return ForEach(x, dst, rows, Relu);
    case ActivationKind::kTanh:
      return ForEach(x, dst, rows, Tanh);
  }
}

}  // namespace trine::reference
