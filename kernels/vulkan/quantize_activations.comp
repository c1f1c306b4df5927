// Activations as blocks of 32 signed bytes (QuantizeActivation of kernels/quant), in the layout of
// quantized_activations.glsl. Eight invocations to a block, each makes one word of it.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "math.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 64;
layout(set = 0, binding = 0) restrict readonly buffer X { float x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer Q { uint q[]; };
// Columns [inner, outer]; the result's lie one after the other, q_stride words apart.
layout(push_constant) uniform Push {
  uint blocks, inner, outer;
  uint x_offset, x_inner_stride, x_outer_stride;
  uint q_offset, q_stride;
};

shared float largest[WORKGROUP];
shared int sums[WORKGROUP];

void main() {
  const uint word = gl_LocalInvocationID.x % 8, first = gl_LocalInvocationID.x - word;
  const uint total = blocks * inner * outer, step = gl_NumWorkGroups.x * (WORKGROUP / 8);
  // The same number of rounds for all of a workgroup: there are barriers in them.
  for (uint base = gl_WorkGroupID.x * (WORKGROUP / 8); base < total; base += step) {
    const bool ours = base + gl_LocalInvocationID.x / 8 < total;
    const uint index = ours ? base + gl_LocalInvocationID.x / 8 : 0;
    const uint block = index % blocks, column = index / blocks;
    const uint from = x_offset + column % inner * x_inner_stride + column / inner * x_outer_stride +
                      block * 32 + word * 4;
    float v[4];
    uint magnitude = 0;  // of floats that are no NaN: their order as integers
    for (uint i = 0; i < 4; ++i) {
      v[i] = x[from + i];
      magnitude = max(magnitude, floatBitsToUint(v[i]) & 0x7fffffffu);
    }
    largest[gl_LocalInvocationID.x] = uintBitsToFloat(magnitude);
    barrier();
    for (uint i = 0; i < 8; ++i) {
      magnitude = max(magnitude, floatBitsToUint(largest[first + i]));
    }

    precise float d = 0.0;
    uint bytes = 0;
    int sum = 0;
    if (magnitude >= 0x26800000u) {  // 2^-50
      d = uintBitsToFloat(magnitude) * Bits(0x3c010204u);
      const float inverse = Recip(d);
      for (int i = 0; i < 4; ++i) {
        precise float scaled = v[i] * inverse;
        const int value = clamp(Round(scaled), -127, 127);
        bytes |= (uint(value) & 255u) << (8 * i);
        sum += value;
      }
    }
    sums[gl_LocalInvocationID.x] = sum;
    barrier();

    const uint column_at = q_offset + column * q_stride;
    const uint at = block + (block & ~7u) + word / 4 * 8;
    const uint scales_at = column_at + ((blocks + 7) & ~7u) * 8;
    if (ours) q[column_at + at * 4 + word % 4] = bytes;
    if (ours && word == 0) q[scales_at + block] = floatBitsToUint(d);
    if (ours && word == 1) {
      int low = 0, high = 0;
      for (uint i = 0; i < 4; ++i) {
        low += sums[first + i];
        high += sums[first + 4 + i];
      }
      q[scales_at + blocks + block] = (uint(low) & 0xffffu) | uint(high) << 16;
    }
    barrier();
  }
}
