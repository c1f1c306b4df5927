// Computes rms_norm and layer_norm, one row for each workgroup, together with the ops next to them
// in most models: the addition before the norm and the quantisation of the result.
//
// An invocation holds its values of the row in registers, as vectors of four neighbours; sums go
// through shared memory. Each value of any operand is read and written by the same invocation
// alone, so y and sum may be in the memory of x or of the addend.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "math.glsl"
#include "place.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint WORKGROUP = 64;   // a power of two, 32 to 512
layout(constant_id = 1) const uint KEPT = 1;         // how many vectors an invocation holds
layout(constant_id = 2) const bool centred = false;  // true: layer_norm; false: rms_norm
layout(constant_id = 3) const bool has_weight = false;
layout(constant_id = 4) const bool has_bias = false;
layout(constant_id = 5) const bool adds = false;
layout(constant_id = 6) const bool writes = true;  // writes y
layout(constant_id = 7) const bool quantizes = false;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer W { float weight[]; };
layout(set = 0, binding = 2) readonly buffer B { float bias[]; };
layout(set = 0, binding = 3) readonly buffer A { float addend[]; };
layout(set = 0, binding = 4) writeonly buffer S { float sum[]; };
layout(set = 0, binding = 5) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 6) writeonly buffer Q { uint q[]; };
layout(push_constant) uniform Push {
  uint n, n1, n2, rows;
  Place x_at, addend_at, sum_at, y_at;
  uint weight_offset, bias_offset;
  float eps, inverse_n;
  uint q_offset, q_stride;  // each row is a column of quantised activations
};
#include "quantize_block.glsl"

// How many vectors of terms are in shared memory at a time: a multiple of the 64 that are added up
// at a time.
const uint kTile = 512;
const uint TILE = kTile / WORKGROUP;  // how many of them each invocation has
shared vec4 terms[kTile];
shared vec4 classes[8];

uint lane;
vec4 row[KEPT];  // +0 beyond the row's end

// Returns where vector j of this invocation begins in the row.
uint PlaceOf(uint j) { return 4u * (j * WORKGROUP + lane); }

vec4 ZeroBehindEnd(vec4 v, uint k) {
  return vec4(k < n ? v.x : 0.0, k + 1u < n ? v.y : 0.0, k + 2u < n ? v.z : 0.0,
              k + 3u < n ? v.w : 0.0);
}

// No branch depends on where the row ends, so that all reads can be in flight.
#define READ_FOUR(ARRAY, at, k)                                                  \
  vec4(ARRAY[(at) + min(k, n - 1u)], ARRAY[(at) + min((k) + 1u, n - 1u)],        \
       ARRAY[(at) + min((k) + 2u, n - 1u)], ARRAY[(at) + min((k) + 3u, n - 1u)])

#define WRITE_FOUR(ARRAY, at, k, v)      \
  for (uint c = 0u; c < 4u; ++c) {       \
    if ((k) + c < n) ARRAY[(at) + (k) + c] = (v)[c]; \
  }

vec4 Canon4(vec4 v) { return vec4(Canon(v.x), Canon(v.y), Canon(v.z), Canon(v.w)); }

// Returns the sum of the row, or of its squares, in the contract's order: 32 classes, value k in
// class k mod 32 by increasing k, joined by halves. The first 32 invocations add, with eight terms
// in flight at a time. Terms beyond the row's end are +0, which changes no sum.
float SumOfRow(bool squares) {
  precise float class_sum = 0.0;
  [[unroll]] for (uint first = 0u; first < KEPT; first += TILE) {
    if (first > 0u) barrier();
    [[unroll]] for (uint j = first; j < (KEPT < first + TILE ? KEPT : first + TILE); ++j) {
      precise vec4 square = row[j] * row[j];
      terms[(j - first) * WORKGROUP + lane] = squares ? square : row[j];
    }
    barrier();
    const uint base = 4u * first * WORKGROUP;
    if (lane < 32u && base < n) {
      const uint count = min(n - base, 4u * kTile);
      for (uint i = 0u; i < count; i += 256u) {
        const uint t = i / 4u + lane / 4u, c = lane % 4u;
        const float a = terms[t][c], b = terms[t + 8u][c], d = terms[t + 16u][c];
        const float e = terms[t + 24u][c], f = terms[t + 32u][c], g = terms[t + 40u][c];
        const float h = terms[t + 48u][c], l = terms[t + 56u][c];
        class_sum = class_sum + a;
        class_sum = class_sum + b;
        class_sum = class_sum + d;
        class_sum = class_sum + e;
        class_sum = class_sum + f;
        class_sum = class_sum + g;
        class_sum = class_sum + h;
        class_sum = class_sum + l;
      }
    }
  }
  if (lane < 32u) classes[lane / 4u][lane % 4u] = class_sum;
  barrier();
  precise vec4 joined = ((classes[0] + classes[4]) + (classes[2] + classes[6])) +
                        ((classes[1] + classes[5]) + (classes[3] + classes[7]));
  precise float total = (joined.x + joined.z) + (joined.y + joined.w);
  return total;
}

void LoadRow(RowIndex index) {
  const uint from = RowAt(x_at, index);
  [[unroll]] for (uint j = 0u; j < KEPT; ++j) row[j] = READ_FOUR(x, from, PlaceOf(j));
  if (adds) {
    const uint other = RowAt(addend_at, index), to = RowAt(sum_at, index);
    [[unroll]] for (uint j = 0u; j < KEPT; ++j) {
      precise vec4 both = row[j] + READ_FOUR(addend, other, PlaceOf(j));
      row[j] = Canon4(both);
      WRITE_FOUR(sum, to, PlaceOf(j), row[j])
    }
  }
  [[unroll]] for (uint j = 0u; j < KEPT; ++j) row[j] = ZeroBehindEnd(row[j], PlaceOf(j));
}

// layer_norm makes values canonical before squaring them: the difference of two close values may be
// 2^-73.
void CentreRow() {
  precise float average = SumOfRow(false) * inverse_n;
  const float mean = Canon(average);
  [[unroll]] for (uint j = 0u; j < KEPT; ++j) {
    precise vec4 difference = row[j] - vec4(mean);
    row[j] = ZeroBehindEnd(Canon4(difference), PlaceOf(j));
  }
}

void main() {
  lane = gl_LocalInvocationID.x;
  vec4 weights[KEPT];
  [[unroll]] for (uint j = 0u; j < KEPT; ++j) {
    if (has_weight) weights[j] = READ_FOUR(weight, weight_offset, PlaceOf(j));
  }
  for (uint r = gl_WorkGroupID.x; r < rows; r += gl_NumWorkGroups.x) {
    const RowIndex index = IndexOfRow(r, n1, n2);
    LoadRow(index);
    if (centred) CentreRow();
    precise float spread = SumOfRow(true) * inverse_n + eps;
    const float inverse_spread = Rsqrt(spread);
    const uint to = RowAt(y_at, index);
    [[unroll]] for (uint j = 0u; j < KEPT; ++j) {
      const uint k = PlaceOf(j);
      precise vec4 value = row[j] * vec4(inverse_spread);
      if (has_weight) value = value * weights[j];
      if (has_bias) value = value + READ_FOUR(bias, bias_offset, k);
      const vec4 result = Canon4(value);
      if (writes) {
        WRITE_FOUR(y, to, k, result)
      }
      if (quantizes) QuantizeBlock(result, q_offset + r * q_stride, n / 32u, k / 32u, k < n);
    }
  }
}
