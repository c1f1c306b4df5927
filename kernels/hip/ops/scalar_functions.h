// Computes the scalar functions of docs/numerics.md for activations and gates, with the device's
// own reciprocal. Results equal those of kernels/reference/math.h bit for bit.
#pragma once

#include "kernels/hip/gpu/device.h"
#include "kernels/reference/ops.h"

namespace trine::hip {

// Returns 1 / (1 + e^-x), before Canon.
TRINE_DEVICE float Logistic(float x) { return Recip(1.0f + Exp(-x)); }

TRINE_DEVICE float Sigmoid(float x) { return Canon(Logistic(x)); }
TRINE_DEVICE float Silu(float x) { return Canon(x * Logistic(x)); }
TRINE_DEVICE float Gelu(float x) {
  const float t = x > 16.0f ? 16.0f : x < -16.0f ? -16.0f : x;
  const float cubic = 1.0f + FromBits(0x3d372713u) * (t * t);
  return Canon(x * Logistic((FromBits(0x3fcc422au) * t) * cubic));
}
TRINE_DEVICE float Tanh(float x) { return Canon(1.0f - 2.0f * Recip(1.0f + Exp(x + x))); }
TRINE_DEVICE float SoftcapValue(float x, float cap, float inverse_cap) {
  return Canon(cap * Tanh(Canon(x * inverse_cap)));
}

TRINE_DEVICE float GluValue(float gate, float up, const reference::GluParams& params) {
  if (params.kind == reference::GluKind::kClampedSwiglu) {
    const float limit = params.limit;
    const float g = gate > limit ? limit : gate;
    const float u = up > limit ? limit : up < -limit ? -limit : up;
    return Canon(Canon(g * Logistic(params.alpha * g)) * (u + 1.0f));
  }
  return Canon((params.kind == reference::GluKind::kSilu ? Silu(gate) : Gelu(gate)) * up);
}

}  // namespace trine::hip
