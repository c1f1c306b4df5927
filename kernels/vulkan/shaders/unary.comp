// y = f(x), value by value: scale, softcap and the activations.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "math.glsl"
#include "place.glsl"

// The values of UnaryKind of simple.cc.
const uint kScale = 0, kSoftcap = 1, kSilu = 2, kGelu = 3, kRelu = 4, kTanh = 5;

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kind = kScale;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push {
  uint n0, n1, n2, total;
  Place x_at, y_at;
  float parameter;
};

float Apply(float value) {
  switch (kind) {
    case kScale: {
      precise float scaled = value * parameter;
      return Canon(scaled);
    }
    case kSoftcap:
      return Softcap(value, parameter, Recip(parameter));
    case kSilu:
      return Silu(value);
    case kGelu:
      return Gelu(value);
    case kRelu:
      return Relu(value);
    default:
      return Tanh(value);
  }
}

void main() {
  const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint e = gl_GlobalInvocationID.x; e < total; e += stride) {
    uint i = e;
    RowIndex row = RowIndex(0u, 0u, 0u);
    if (total != n0) {
      i = e % n0;
      row = IndexOfRow(e / n0, n1, n2);
    }
    y[RowAt(y_at, row) + i] = Apply(x[RowAt(x_at, row) + i]);
  }
}
