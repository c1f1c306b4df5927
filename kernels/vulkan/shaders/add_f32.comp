// y = canon(a + b), element by element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push { uint n; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  precise float sum = a[i] + b[i];
  y[i] = Canon(sum);
}
