// y = f(a, b), value by value: add, mul and the gated units. A stride of 0 in b repeats it.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "math.glsl"
#include "place.glsl"
#include "glu.glsl"

const uint kAdd = 0, kMul = 1;  // values of BinaryKind of simple.cc; glu.glsl has the others

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kind = kAdd;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push {
  uint n0, n1, n2, total;
  Place a_at, b_at, y_at;
  uint b_stride0;  // 0 or 1
  float alpha, limit;
};

float Apply(float first, float second) {
  if (kind >= kGluSilu) return Glu(kind, first, second, alpha, limit);
  precise float result;
  if (kind == kAdd) {
    result = first + second;
  } else {
    result = first * second;
  }
  return Canon(result);
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
    const float second = b[RowAt(b_at, row) + i * b_stride0];
    y[RowAt(y_at, row) + i] = Apply(a[RowAt(a_at, row) + i], second);
  }
}
