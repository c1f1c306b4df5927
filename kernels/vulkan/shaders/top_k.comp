// Finds the k best values of each row of x [n, rows] with their ids: the highest first, and of
// equal values the one with the lowest id.
#version 460
#extension GL_GOOGLE_include_directive : require

layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Ids { uint ids[]; };
layout(set = 0, binding = 2) writeonly buffer Values { float values[]; };
layout(push_constant) uniform Push {
  uint n, rows, k;
  uint x_offset, x_row;
  uint ids_offset, ids_row;
  uint values_offset, values_row;
};

#include "select.glsl"

uint x_at;
float Score(uint id) { return x[x_at + id]; }

void main() {
  for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
    x_at = x_offset + row * x_row;
    Ranked ranked = Ranked(0.0, kNone);
    for (uint place = 0u; place < k; ++place) {
      ranked = NextRanked(n, ranked);
      if (gl_LocalInvocationID.x != 0u) continue;
      ids[ids_offset + row * ids_row + place] = ranked.id;
      values[values_offset + row * values_row + place] = ranked.score;
    }
  }
}
