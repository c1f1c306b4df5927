// Joins the chunks that attention.comp has written to scratch, from left to right, one row for each
// workgroup.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "math.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool quantizes = false;  // also writes y quantised
layout(set = 0, binding = 0) readonly buffer Scratch { float scratch[]; };
layout(set = 0, binding = 1) readonly buffer QOffsets { int q_offsets[]; };
layout(set = 0, binding = 2) readonly buffer KvLengths { int kv_lengths[]; };
layout(set = 0, binding = 3) readonly buffer Sinks { float sinks[]; };
layout(set = 0, binding = 4) writeonly buffer Y { float y[]; };
layout(set = 0, binding = 5) writeonly buffer Quantized { uint q[]; };
#include "attention_push.glsl"
#include "quantize_block.glsl"

// Returns values i to i + 3 of the chunk at `at`. Beyond the end the last value repeats.
vec4 ValuesAt(uint at, uint i) {
  const uint last = value_width - 1u;
  return vec4(scratch[at + i], scratch[at + min(i + 1u, last)], scratch[at + min(i + 2u, last)],
              scratch[at + min(i + 3u, last)]);
}

vec4 JoinedValues(uint i, uint row, uvec2 range, float sink) {
  const uint stride = value_width + 2u;
  uint at = (row * chunks + range.x) * stride;
  Joined state = Joined(scratch[at + value_width], scratch[at + value_width + 1u]);
  precise vec4 values = ValuesAt(at, i);
  for (uint chunk = range.x + 1u; chunk < range.y; ++chunk) {
    at += stride;
    const JoinWeights weights =
        JoinChunk(scratch[at + value_width], scratch[at + value_width + 1u], state);
    const vec4 next = ValuesAt(at, i);
    for (uint k = 0u; k < 4u; ++k) values[k] = JoinValue(values[k], next[k], weights);
  }
  if ((flags & kSinks) != 0u) {
    values = values * vec4(JoinChunk(sink, 1.0, state).before);
    for (uint k = 0u; k < 4u; ++k) values[k] = Canon(values[k]);
  }
  values = values * vec4(Recip(state.l));
  for (uint k = 0u; k < 4u; ++k) values[k] = Canon(values[k]);
  return values;
}

void JoinRow(uint head, uint token, uint heads) {
  const int sequence = SequenceOfToken(token);
  ivec2 visible = ivec2(0);
  if (sequence >= 0) visible = VisibleTo(token, sequence);
  const bool empty = visible.x >= visible.y;
  const uvec2 range = uvec2(visible.x, visible.y + 255) / kChunk;
  const float sink = (flags & kSinks) != 0u ? sinks[sinks_offset + head] : 0.0;
  // All invocations must take the same number of rounds, because there are barriers in them.
  for (uint base = 0u; base < value_width; base += 4u * gl_WorkGroupSize.x) {
    const uint i = base + 4u * gl_LocalInvocationID.x;
    const bool ours = i < value_width;
    vec4 values = vec4(0.0);
    if (ours && !empty) values = JoinedValues(i, token * heads + head, range, sink);
    const uint at = y_offset + head * y_head + token * y_token + i;
    for (uint k = 0u; k < 4u; ++k) {
      if (i + k < value_width) y[at + k] = values[k];
    }
    if (quantizes) {
      const uint blocks = heads * value_width / 32u, block = (head * value_width + i) / 32u;
      QuantizeBlock(values, token * QuantizedWords(blocks), blocks, block, ours);
    }
  }
}

void main() {
  for (uint token = gl_WorkGroupID.y; token < tokens; token += gl_NumWorkGroups.y) {
    JoinRow(gl_WorkGroupID.x, token, gl_NumWorkGroups.x);
  }
}
