#include <algorithm>

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

// Returns the row of b that belongs to row `index` of the destination.
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

float ClampedSwiglu(float gate, float up, float alpha, float limit) {
  const float g = std::min(gate, limit);
  const float u = std::clamp(up, -limit, limit);
  const float activated = Canon(g * Recip(1.0f + Exp(-(alpha * g))));
  return Canon(activated * (u + 1.0f));
}

float GluValue(float gate, float up, const GluParams& params) {
  switch (params.kind) {
    case GluKind::kSilu:
      return Canon(Silu(gate) * up);
    case GluKind::kGelu:
      return Canon(Gelu(gate) * up);
    case GluKind::kClampedSwiglu:
      return ClampedSwiglu(gate, up, params.alpha, params.limit);
  }
  return 0.0f;
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

void Glu(const View& gate, const View& up, const GluParams& params, const View& dst, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* gate_row = F32Row(gate, r);
    const float* up_row = F32Row(up, r);
    float* y = F32Row(dst, r);
    for (int64_t i = 0; i < dst.dims[0]; ++i) y[i] = GluValue(gate_row[i], up_row[i], params);
  }
}

void Rope(const View& x, const View& table, RopeMode mode, const View& dst, Range rows) {
  const int64_t pairs = table.dims[0] / 2;
  const int64_t partner = mode == RopeMode::kHalves ? pairs : 1;
  const int64_t step = mode == RopeMode::kHalves ? 1 : 2;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* cosine = F32Row(table, IndexOfRow(x, r).i2);
    const float* sine = cosine + pairs;
    const float* from = F32Row(x, r);
    float* to = F32Row(dst, r);
    for (int64_t i = 0; i < pairs; ++i) {
      const float x0 = from[i * step];
      const float x1 = from[i * step + partner];
      to[i * step] = Canon(x0 * cosine[i] - x1 * sine[i]);
      to[i * step + partner] = Canon(x0 * sine[i] + x1 * cosine[i]);
    }
    for (int64_t i = 2 * pairs; i < x.dims[0]; ++i) to[i] = from[i];
  }
}

}  // namespace trine::reference
