// y = float weights times 1 to 8 columns of f32: 32 lanes to a slot, one for each class of values.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "exact.glsl"
#include "half.glsl"
#include "weight_types.glsl"
#include "float_weights.glsl"
#include "product.glsl"
#include "gemv.glsl"

layout(set = 0, binding = 1) restrict readonly buffer X { float x[]; };

shared float sums[WORKGROUP * RESULTS];

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
    const bool whole = PACKED && run + 256 <= k;
    uvec4 words[ROWS];  // eight values of the lane's class
    if (whole) {
      [[unroll]] for (uint r = 0; r < ROWS; ++r) words[r] = weights128[row_at[r] + run / 8 + lane];
    }
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      const uint at = run + 32 * i + lane;
      if (at >= k) break;
      float w[ROWS];
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        w[r] = whole ? FiniteF16((words[r][i / 2] >> (16 * (i & 1u))) & 0xffffu)
                     : LoadWeight(row_at[r], k, at);
      }
      [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
        const float value = x[column_at[c] + at];
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
    precise float s[32];
    [[unroll]] for (uint j = 0; j < 32; ++j) s[j] = sums[(slot * RESULTS + i) * 32 + j];
    [[unroll]] for (uint half_count = 16; half_count > 0; half_count /= 2) {
      [[unroll]] for (uint j = 0; j < half_count; ++j) s[j] = s[j] + s[j + half_count];
    }
    y[ColumnOfY(c) + r] = Finish(s[0], place.bias + r);
  }
}
