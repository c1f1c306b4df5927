// Joins the chunks that attention left in scratch memory, left to right, one row of y per workgroup.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "math.glsl"

layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer Scratch { float scratch[]; };
layout(set = 0, binding = 1) readonly buffer QOffsets { int q_offsets[]; };
layout(set = 0, binding = 2) readonly buffer KvLengths { int kv_lengths[]; };
layout(set = 0, binding = 3) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 4) writeonly buffer Y { float y[]; };
#include "attention_push.glsl"

float JoinedValue(uint i, uint row, uvec2 range, float sink) {
  const uint stride = value_width + 2u;
  uint at = (row * chunks + range.x) * stride;
  Joined state = Joined(scratch[at + value_width], scratch[at + value_width + 1u]);
  precise float value = scratch[at + i];
  for (uint chunk = range.x + 1u; chunk < range.y; ++chunk) {
    at += stride;
    const JoinWeights weights =
        JoinChunk(scratch[at + value_width], scratch[at + value_width + 1u], state);
    value = JoinValue(value, scratch[at + i], weights);
  }
  if ((flags & kSinks) != 0u) {
    value = value * JoinChunk(sink, 1.0, state).before;
    value = Canon(value);
  }
  value = value * Recip(state.l);
  return Canon(value);
}

void JoinRow(uint head, uint token, uint heads) {
  const int sequence = SequenceOfToken(token);
  ivec2 visible = ivec2(0);
  if (sequence >= 0) visible = VisibleTo(token, sequence);
  const bool empty = visible.x >= visible.y;
  const uvec2 range = uvec2(visible.x, visible.y + 255) / kChunk;
  const float sink = (flags & kSinks) != 0u ? sinks[sinks_offset + head] : 0.0;
  for (uint i = gl_LocalInvocationID.x; i < value_width; i += gl_WorkGroupSize.x) {
    y[y_offset + head * y_head + token * y_token + i] =
        empty ? 0.0 : JoinedValue(i, token * heads + head, range, sink);
  }
}

void main() {
  for (uint token = gl_WorkGroupID.y; token < tokens; token += gl_NumWorkGroups.y) {
    JoinRow(gl_WorkGroupID.x, token, gl_NumWorkGroups.x);
  }
}
