// The gated units. The kinds are part of BinaryKind of simple.cc.
const uint kGluSilu = 2, kGluGelu = 3, kGluClampedSwiglu = 4;

float ClampedSwiglu(float gate, float up, float alpha, float limit) {
  const float g = gate > limit ? limit : gate;
  const float u = up > limit ? limit : up < -limit ? -limit : up;
  precise float scaled = alpha * g;
  precise float activated = g * Logistic(scaled);
  precise float result = Canon(activated) * (u + 1.0);
  return Canon(result);
}

float Glu(uint kind, float gate, float up, float alpha, float limit) {
  if (kind == kGluClampedSwiglu) return ClampedSwiglu(gate, up, alpha, limit);
  const float activated = kind == kGluSilu ? Silu(gate) : Gelu(gate);
  precise float result = activated * up;
  return Canon(result);
}
