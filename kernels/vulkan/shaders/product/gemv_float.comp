// Multiplies float weights with 1 to 8 columns of f32. A slot has 32 lanes, one for each class of
// values.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "exact.glsl"
#include "half.glsl"
#include "product/weight_types.glsl"
#include "product/float_weights.glsl"
#include "product/product.glsl"
#include "product/gemv.glsl"

layout(set = 0, binding = 1) restrict readonly buffer X { float x[]; };

shared float sums[WORKGROUP * RESULTS];

vec4 Four(uint at) { return vec4(sums[at], sums[at + 1], sums[at + 2], sums[at + 3]); }

void main() {
  const uint slot = gl_LocalInvocationID.x / LANES, lane = gl_LocalInvocationID.x % LANES;
  const uint row = FirstRow(), column = FirstColumn();
  Place place;
  if (GroupIsBeyond() || !FindPlace(row, place)) return;

  uint row_at[ROWS], column_at[COLUMNS];
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    row_at[r] = place.weights + min(row + r, n - 1) * weight_stride;
  }
  [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
    column_at[c] = ColumnOfX(min(column + c, columns - 1));
  }
  precise float sum[RESULTS];
  [[unroll]] for (uint i = 0; i < RESULTS; ++i) sum[i] = 0.0;

  for (uint run = 0; run < k; run += 256) {
    uvec4 words[ROWS];  // eight values of the lane's class
    if (PACKED) {
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        words[r] = LoadPackedRun(row_at[r], k, run, lane);
      }
    }
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      // Beyond the row's end the last value is read again and multiplied by zero. This changes no
      // sum and needs no branch, so that all loads of a run can be in flight together.
      const uint index = run + 32 * i + lane, at = min(index, k - 1);
      float w[ROWS];
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        if (PACKED) {
          w[r] = FiniteF16((words[r][i / 2] >> (16 * (i & 1u))) & 0xffffu);
        } else {
          w[r] = LoadWeight(row_at[r], k, at);
        }
      }
      [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
        float value = x[column_at[c] + at];
        if (index >= k) value = 0.0;
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
          precise float term = w[r] * value;
          sum[r * COLUMNS + c] = sum[r * COLUMNS + c] + term;
        }
      }
    }
  }

  [[unroll]] for (uint i = 0; i < RESULTS; ++i) sums[(slot * RESULTS + i) * 32 + lane] = sum[i];
  barrier();
  for (uint i = lane; i < RESULTS; i += LANES) {
    const uint r = row + i / COLUMNS, c = column + i % COLUMNS;
    if (r >= n || c >= columns) continue;
    const uint from = (slot * RESULTS + i) * 32;
    // Joins four classes at a time. glslc would unroll a loop and drop its `precise`.
    precise vec4 s0 = Four(from) + Four(from + 16), s4 = Four(from + 4) + Four(from + 20);
    precise vec4 s8 = Four(from + 8) + Four(from + 24), s12 = Four(from + 12) + Four(from + 28);
    precise vec4 s = (s0 + s8) + (s4 + s12);
    precise float dot = (s.x + s.z) + (s.y + s.w);
    y[ColumnOfY(c) + r] = Finish(dot, place.bias + r);
  }
}
