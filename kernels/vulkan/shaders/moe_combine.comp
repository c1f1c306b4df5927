// Sums x [n, used, tokens] * weights [used, tokens] over the slots, in order, to y [n, tokens].
#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer W { float weights[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push {
  uint n, total, used;
  uint x_offset, x_slot, x_token;
  uint w_offset, w_token;
  uint y_offset, y_token;
};

void main() {
  const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint e = gl_GlobalInvocationID.x; e < total; e += stride) {
    const uint i = e % n, token = e / n;
    const uint from = x_offset + token * x_token + i;
    const uint w = w_offset + token * w_token;
    precise float sum = x[from] * weights[w];
    sum = Canon(sum);
    for (uint slot = 1u; slot < used; ++slot) {
      precise float term = x[from + slot * x_slot] * weights[w + slot];
      sum = sum + Canon(term);
    }
    y[y_offset + token * y_token + i] = Canon(sum);
  }
}
