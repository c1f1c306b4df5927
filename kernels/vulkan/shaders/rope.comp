// Rotates pairs of x [d, heads, tokens] by the cosines and sines of each token's row of the table;
// copies the values beyond the pairs.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"
#include "rotate.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool halves = false;  // pairs (i, i + pairs); false: (2i, 2i + 1)
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer T { float table[]; };
layout(set = 0, binding = 2) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push {
  uint items, total;  // pairs and copied values together: in a row, and in all rows
  uint pairs, heads;
  uint x_offset, x_head, x_token;
  uint table_offset, table_token;
  uint y_offset, y_head, y_token;
};

void main() {
  const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint e = gl_GlobalInvocationID.x; e < total; e += stride) {
    const uint item = e % items, row = e / items;
    const uint head = row % heads, token = row / heads;
    const uint from = x_offset + head * x_head + token * x_token;
    const uint to = y_offset + head * y_head + token * y_token;
    if (item >= pairs) {
      y[to + item + pairs] = x[from + item + pairs];
      continue;
    }
    const uint first = halves ? item : 2u * item;
    const uint second = halves ? item + pairs : 2u * item + 1u;
    const float cosine = table[table_offset + token * table_token + item];
    const float sine = table[table_offset + token * table_token + pairs + item];
    const vec2 rotated = Rotated(x[from + first], x[from + second], cosine, sine);
    y[to + first] = rotated.x;
    y[to + second] = rotated.y;
  }
}
