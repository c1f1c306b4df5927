// Sets y [k, n] to the rows ids [n] of a table of any weight type, made canonical, or to zeros for
// an id outside of the table. A table larger than one binding needs a run for each window, which
// writes the window's rows.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
#include "exact.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint table_type = 1;
layout(set = 0, binding = 0) readonly buffer Table { uint8_t table[]; };
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

uint WeightByte(uint at) { return uint(table[at]); }
#include "product/decode.glsl"

void main() {
  const uint first = gl_GlobalInvocationID.x, stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint r = gl_WorkGroupID.y; r < n; r += gl_NumWorkGroups.y) {
    const uint id = uint(ids[ids_offset + r]);  // a negative id becomes a large one
    const uint to = y_offset + r * y_row;
    if (id >= rows) {
      if (window_begin != 0u) continue;  // the first window's run writes the zeros
      for (uint i = first; i < k; i += stride) y[to + i] = 0.0;
      continue;
    }
    if (id < window_begin || id >= window_end) continue;
    const uint from = table_offset + (id - window_begin) * table_row;
    for (uint i = first; i < k; i += stride) y[to + i] = Canon(DecodeWeight(table_type, from, i));
  }
}
