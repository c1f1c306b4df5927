// Multiplies float weights with many columns of f32. The workgroup has 256 invocations: eight for
// each of the 32 classes of values, as 4 (rows) by 2 (columns).
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "exact.glsl"
#include "half.glsl"
#include "product/weight_types.glsl"
#include "product/float_weights.glsl"
#define LISTS
#include "product/product.glsl"
#include "product/gemm.glsl"

layout(set = 0, binding = 1) restrict readonly buffer X { float x[]; };

const uint TILE_ROWS = 4 * ROWS;
const uint TILE_COLUMNS = 2 * COLUMNS;
const uint DEPTH = 128;  // values between two barriers: four of each class
const uint X_TILE = DEPTH * TILE_ROWS;
const uint JOIN = 128 * RESULTS;
const uint VALUES = DEPTH * (TILE_ROWS + TILE_COLUMNS);
// Holds rows of weights, then columns of x, DEPTH values each; in the end partial sums of half the
// classes.
shared float tile[VALUES > JOIN ? VALUES : JOIN];

// Values beyond k are zeros: their terms change no sum.
void LoadTile(Columns found, uint first_row, uint first) {
  for (uint i = gl_LocalInvocationID.x; i < DEPTH * TILE_ROWS; i += WORKGROUP) {
    const uint at = first + i % DEPTH, row = min(first_row + i / DEPTH, n - 1);
    tile[i] = at < k ? LoadWeight(found.place.weights + row * weight_stride, k, at) : 0.0;
  }
  for (uint i = gl_LocalInvocationID.x; i < DEPTH * TILE_COLUMNS; i += WORKGROUP) {
    const uint at = first + i % DEPTH, column = min(i / DEPTH, found.count - 1);
    tile[X_TILE + i] = at < k ? x[ColumnOfX(ColumnOf(found, column)) + at] : 0.0;
  }
}

void main() {
  const uint class_index = gl_LocalInvocationID.x & 31u, place = gl_LocalInvocationID.x / 32;
  // rows row, row + 4, ...; columns column, column + 2, ...
  const uint row = place & 3u, column = place / 4;
  const uint first_row = gl_WorkGroupID.x * TILE_ROWS;
  const uint tile_index = gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y;
  Columns found;
  if (!FindColumns(tile_index, TILE_COLUMNS, found)) return;

  precise float sum[RESULTS];
  [[unroll]] for (uint i = 0; i < RESULTS; ++i) sum[i] = 0.0;
  for (uint first = 0; first < k && !found.zeros; first += DEPTH) {
    LoadTile(found, first_row, first);
    barrier();
    for (uint at = class_index; at < DEPTH; at += 32) {
      float w[ROWS];
      [[unroll]] for (uint r = 0; r < ROWS; ++r) w[r] = tile[(row + 4 * r) * DEPTH + at];
      [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
        const float value = tile[X_TILE + (column + 2 * c) * DEPTH + at];
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
          precise float term = w[r] * value;
          sum[r * COLUMNS + c] = sum[r * COLUMNS + c] + term;
        }
      }
    }
    barrier();
  }

  for (uint half_count = 16; half_count > 0; half_count /= 2) {
    if (class_index >= half_count && class_index < 2 * half_count) {
      [[unroll]] for (uint i = 0; i < RESULTS; ++i) {
        tile[(place * RESULTS + i) * 16 + class_index - half_count] = sum[i];
      }
    }
    barrier();
    if (class_index < half_count) {
      [[unroll]] for (uint i = 0; i < RESULTS; ++i) {
        sum[i] = sum[i] + tile[(place * RESULTS + i) * 16 + class_index];
      }
    }
    barrier();
  }
  if (class_index != 0) return;
  [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
    if (column + 2 * c >= found.count) break;
    const uint to = ColumnOfY(ColumnOf(found, column + 2 * c));
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      const uint at = first_row + row + 4 * r;
      if (at >= n) break;
      y[to + at] = found.zeros ? 0.0 : Finish(sum[r * COLUMNS + c], found.place.bias + at);
    }
  }
}
