#include <algorithm>

#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"

namespace trine::reference {
namespace {

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

void Glu(const View& gate, const View& up, const GluParams& params, const View& dst, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* gate_row = F32Row(gate, r);
    const float* up_row = F32Row(up, r);
    float* y = F32Row(dst, r);
    for (int64_t i = 0; i < dst.dims[0]; ++i) y[i] = GluValue(gate_row[i], up_row[i], params);
  }
}

}  // namespace trine::reference
