// Quantises activations to blocks of 32 signed bytes (QuantizeActivation of kernels/quant), in the
// layout of quantized_activations.glsl. With GLU, first computes them from gate and up.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "math.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 64;
#ifdef GLU
#include "glu.glsl"
layout(constant_id = 1) const uint kind = kGluSilu;
layout(constant_id = 2) const bool writes = false;  // also writes y
layout(set = 0, binding = 0) readonly buffer Gate { float gate[]; };
layout(set = 0, binding = 1) readonly buffer Up { float up[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 3) writeonly buffer Q { uint q[]; };
#else
layout(set = 0, binding = 0) restrict readonly buffer X { float x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer Q { uint q[]; };
#endif
struct Columns {
  uint offset, inner_stride, outer_stride;
};
// Columns are [inner, outer]. Those of the result follow each other, q_stride words apart.
layout(push_constant) uniform Push {
  uint blocks, inner, outer;
  uint q_offset, q_stride;
#ifdef GLU
  Columns gate_at, up_at, y_at;
  float alpha, limit;
#else
  Columns x_at;
#endif
};
#include "quantize_block.glsl"

uint ColumnOf(Columns at, uint column) {
  return at.offset + column % inner * at.inner_stride + column / inner * at.outer_stride;
}

// Returns four values of a column, beginning with `row`.
vec4 Values(uint column, uint row, bool ours) {
  vec4 v;
#ifdef GLU
  const uint gates = ColumnOf(gate_at, column) + row, ups = ColumnOf(up_at, column) + row;
  for (uint i = 0u; i < 4u; ++i) v[i] = Glu(kind, gate[gates + i], up[ups + i], alpha, limit);
  const uint to = ColumnOf(y_at, column) + row;
  for (uint i = 0u; writes && ours && i < 4u; ++i) y[to + i] = v[i];
#else
  const uint from = ColumnOf(x_at, column) + row;
  for (uint i = 0u; i < 4u; ++i) v[i] = x[from + i];
#endif
  return v;
}

void main() {
  const uint word = gl_LocalInvocationID.x % 8u;
  const uint total = blocks * inner * outer, step = gl_NumWorkGroups.x * (WORKGROUP / 8);
  // All invocations must take the same number of rounds, because there are barriers in them.
  for (uint base = gl_WorkGroupID.x * (WORKGROUP / 8); base < total; base += step) {
    const bool ours = base + gl_LocalInvocationID.x / 8 < total;
    const uint index = ours ? base + gl_LocalInvocationID.x / 8 : 0;
    const uint block = index % blocks, column = index / blocks;
    const vec4 v = Values(column, block * 32u + word * 4u, ours);
    QuantizeBlock(v, q_offset + column * q_stride, blocks, block, ours);
  }
}
