// Sets y [k, n] to the rows ids [n] of a table of any weight type, made canonical, or to zeros for
// an id outside of the table. A table larger than one binding needs a run for each window, which
// writes the window's rows. An invocation takes four neighbouring values of a row at a time.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"
#include "half.glsl"
#include "product/weight_types.glsl"
#include "product/weight_group.glsl"
#include "product/float_weights.glsl"

layout(local_size_x_id = 0) in;
layout(set = 0, binding = 1) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push {
  uint k, n;
  uint table_offset, table_row;  // in bytes
  uint rows;                     // rows of the whole table
  uint window_begin, window_end;
  uint ids_offset;
  uint y_offset, y_row;
};

// Returns values 4 * word to 4 * word + 3 of the row that begins at byte `row`:
//
//   weight = (d * float(scale)) * float(q) - dmin * float(min)
//
// with each step rounded. A row of floats repeats its last value beyond its end.
vec4 Weights(uint row, uint word) {
  if (FORMAT < kQ4_0) {
    const uvec4 at = min(uvec4(4 * word) + uvec4(0, 1, 2, 3), uvec4(k - 1));
    return vec4(LoadWeight(row, k, at.x), LoadWeight(row, k, at.y), LoadWeight(row, k, at.z),
                LoadWeight(row, k, at.w));
  }
  const Group g = LoadFileGroup(row, word / 8);
  const bool upper = (word & 4u) != 0;
  const uint bytes = (upper ? g.high : g.low)[word & 3u];
  const ivec4 q = ((ivec4(bytes) << ivec4(24, 16, 8, 0)) >> 24) - ZERO;
  precise float scaled = g.d * float(upper ? g.scale.y : g.scale.x);
  precise float least = g.dmin * float(upper ? g.min.y : g.min.x);
  precise vec4 weights;
  for (uint i = 0; i < 4; ++i) weights[i] = scaled * float(q[i]) - least;
  return weights;
}

void main() {
  const uint first = gl_GlobalInvocationID.x, stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint r = gl_WorkGroupID.y; r < n; r += gl_NumWorkGroups.y) {
    const uint id = uint(ids[ids_offset + r]);  // a negative id becomes a large one
    const bool inside = id < rows;
    // The first window's run writes the zeros.
    if (inside ? id < window_begin || id >= window_end : window_begin != 0u) continue;
    const uint to = y_offset + r * y_row, from = table_offset + (id - window_begin) * table_row;
    for (uint word = first; word < (k + 3) / 4; word += stride) {
      const vec4 values = inside ? Weights(from, word) : vec4(0.0);
      for (uint i = 0; i < min(4u, k - 4 * word); ++i) y[to + 4 * word + i] = Canon(values[i]);
    }
  }
}
