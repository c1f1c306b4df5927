// rms_norm and layer_norm, one row per workgroup.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "math.glsl"
#include "place.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool centred = false;  // layer_norm
layout(constant_id = 2) const bool has_weight = false;
layout(constant_id = 3) const bool has_bias = false;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer W { float weight[]; };
layout(set = 0, binding = 2) readonly buffer B { float bias[]; };
layout(set = 0, binding = 3) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push {
  uint n, n1, n2, rows;
  Place x_at, y_at;
  uint weight_offset, bias_offset;
  float eps;
};

#include "sum32.glsl"

uint x_row;
float mean;

// What is squared: of layer_norm canon'd, as the difference of two close values may be 2^-73.
float Centred(uint i) {
  const float value = x[x_row + i];
  if (!centred) return value;
  precise float difference = value - mean;
  return Canon(difference);
}

const uint kSum = 0, kSumOfSquares = 1;
float SumTerm(uint which, uint i) {
  if (which == kSum) return x[x_row + i];
  const float value = Centred(i);
  precise float square = value * value;
  return square;
}

void NormRow(uint y_row) {
  const float inverse_n = Recip(float(n));
  if (centred) {
    precise float average = Sum32(kSum, n) * inverse_n;
    mean = Canon(average);
  }
  precise float spread = Sum32(kSumOfSquares, n) * inverse_n + eps;
  const float inverse_spread = Rsqrt(spread);
  for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x) {
    precise float value = Centred(i) * inverse_spread;
    if (has_weight) value = value * weight[weight_offset + i];
    if (has_bias) value = value + bias[bias_offset + i];
    y[y_row + i] = Canon(value);
  }
}

void main() {
  for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
    const RowIndex index = IndexOfRow(row, n1, n2);
    x_row = RowAt(x_at, index);
    NormRow(RowAt(y_at, index));
  }
}
