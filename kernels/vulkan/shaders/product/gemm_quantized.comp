// Multiplies quantised weights with many columns of quantised activations. The workgroup has 256
// invocations: 32 for each of the eight classes of blocks, as 8 (rows) by 4 (columns).
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "exact.glsl"
#include "product/weight_types.glsl"
#include "product/packed_group.glsl"
#include "product/block_term.glsl"
#include "product/quantized_activations.glsl"
#define LISTS
#include "product/product.glsl"
#include "product/gemm.glsl"

const uint TILE_ROWS = 8 * ROWS;
const uint TILE_COLUMNS = 4 * COLUMNS;

// A tile holds eight blocks, one of each class: weights as [half][class][row], then activations as
// [half][class][column]. A word of padding for each class puts the eight classes of a row in
// different banks. Scales are in arrays of their own. In the end the tile holds partial sums of
// half the classes.
const uint ROW_PITCH = TILE_ROWS + 1;
const uint COLUMN_PITCH = TILE_COLUMNS + 1;
const uint X_TILE = 16 * ROW_PITCH;
const uint JOIN_WORDS = (RESULTS + 3) / 4;  // words of an invocation
const uint JOIN = 128 * JOIN_WORDS;
const uint VALUES = X_TILE + 16 * COLUMN_PITCH;
shared uvec4 tile[VALUES > JOIN ? VALUES : JOIN];
shared vec2 weight_scales[8 * TILE_ROWS];  // d, dmin
shared uvec2 weight_factors[SCALED ? 8 * TILE_ROWS : 1];  // scale, min; 16 bits for each half
shared float x_scales[8 * TILE_COLUMNS];
shared uint x_sums[8 * TILE_COLUMNS];

uint Pack16(ivec2 v) { return (uint(v.x) & 0xffffu) | uint(v.y) << 16; }
ivec2 Unpack16(uint v) { return ivec2(bitfieldExtract(int(v), 0, 16), int(v) >> 16); }

void LoadTile(Columns found, uint first_row, uint blocks, uint first_block) {
  for (uint i = gl_LocalInvocationID.x; i < 8 * TILE_ROWS; i += WORKGROUP) {
    const uint class_index = i & 7u, row = i / 8, block = first_block + class_index;
    if (block >= blocks) continue;
    const uint from = found.place.weights + min(first_row + row, n - 1) * weight_stride;
    const Group g = LoadGroup(from, blocks, block);
    tile[class_index * ROW_PITCH + row] = g.low;
    tile[(class_index + 8) * ROW_PITCH + row] = g.high;
    weight_scales[class_index * TILE_ROWS + row] = vec2(g.d, g.dmin);
    if (SCALED) {
      weight_factors[class_index * TILE_ROWS + row] = uvec2(Pack16(g.scale), Pack16(g.min));
    }
  }
  for (uint i = gl_LocalInvocationID.x; i < 8 * TILE_COLUMNS; i += WORKGROUP) {
    const uint class_index = i & 7u, column = i / 8, block = first_block + class_index;
    if (block >= blocks) continue;
    const uint from = ColumnOfX(ColumnOf(found, min(column, found.count - 1)));
    const Activation a = LoadActivation(from, blocks, block);
    tile[X_TILE + class_index * COLUMN_PITCH + column] = a.low;
    tile[X_TILE + (class_index + 8) * COLUMN_PITCH + column] = a.high;
    x_scales[class_index * TILE_COLUMNS + column] = a.d;
    x_sums[class_index * TILE_COLUMNS + column] = Pack16(a.sum);
  }
}

Group WeightOf(uint class_index, uint row) {
  Group g;
  g.low = tile[class_index * ROW_PITCH + row];
  g.high = tile[(class_index + 8) * ROW_PITCH + row];
  const vec2 scales = weight_scales[class_index * TILE_ROWS + row];
  g.d = scales.x;
  g.dmin = scales.y;
  g.scale = ivec2(1);
  g.min = ivec2(-1);
  if (SCALED) {
    const uvec2 factors = weight_factors[class_index * TILE_ROWS + row];
    g.scale = Unpack16(factors.x);
    g.min = Unpack16(factors.y);
  }
  return g;
}

Activation ActivationOf(uint class_index, uint column) {
  Activation a;
  a.low = tile[X_TILE + class_index * COLUMN_PITCH + column];
  a.high = tile[X_TILE + (class_index + 8) * COLUMN_PITCH + column];
  a.d = x_scales[class_index * TILE_COLUMNS + column];
  a.sum = Unpack16(x_sums[class_index * TILE_COLUMNS + column]);
  return a;
}

void main() {
  const uint class_index = gl_LocalInvocationID.x / 32, place = gl_LocalInvocationID.x & 31u;
  // rows row, row + 8, ...; columns column, column + 4, ...
  const uint row = place & 7u, column = place / 8;
  const uint blocks = k / 32, first_row = gl_WorkGroupID.x * TILE_ROWS;
  const uint tile_index = gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y;
  Columns found;
  if (!FindColumns(tile_index, TILE_COLUMNS, found)) return;

  precise float sum[RESULTS];
  [[unroll]] for (uint i = 0; i < RESULTS; ++i) sum[i] = 0.0;
  for (uint first_block = 0; first_block < blocks && !found.zeros; first_block += 8) {
    LoadTile(found, first_row, blocks, first_block);
    barrier();
    if (first_block + class_index < blocks) {
      Group w[ROWS];
      [[unroll]] for (uint r = 0; r < ROWS; ++r) w[r] = WeightOf(class_index, row + 8 * r);
      [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
        const Activation a = ActivationOf(class_index, column + 4 * c);
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
          sum[r * COLUMNS + c] = sum[r * COLUMNS + c] + BlockTerm(w[r], a);
        }
      }
    }
    barrier();
  }

  for (uint half_count = 4; half_count > 0; half_count /= 2) {
    if (class_index >= half_count && class_index < 2 * half_count) {
      [[unroll]] for (uint i = 0; i < RESULTS; ++i) {
        tile[((class_index - half_count) * JOIN_WORDS + i / 4) * 32 + place][i & 3u] =
            floatBitsToUint(sum[i]);
      }
    }
    barrier();
    if (class_index < half_count) {
      [[unroll]] for (uint i = 0; i < RESULTS; ++i) {
        const uint other = tile[(class_index * JOIN_WORDS + i / 4) * 32 + place][i & 3u];
        sum[i] = sum[i] + uintBitsToFloat(other);
      }
    }
    barrier();
  }
  if (class_index != 0) return;
  [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
    if (column + 4 * c >= found.count) break;
    const uint to = ColumnOfY(ColumnOf(found, column + 4 * c));
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      const uint at = first_row + row + 8 * r;
      if (at >= n) break;
      y[to + at] = found.zeros ? 0.0 : Finish(sum[r * COLUMNS + c], found.place.bias + at);
    }
  }
}
