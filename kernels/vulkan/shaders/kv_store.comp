// Writes x [d, kv_heads, tokens] into a paged cache [d, block_positions, kv_heads, blocks] at the
// tokens' slots; skips a slot outside of the cache.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_16bit_storage : require
#include "exact.glsl"
#include "half.glsl"
#include "store_value.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint form = kStoreF32;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer Slots { int slots[]; };
layout(set = 0, binding = 2) writeonly buffer C4 { float cache_words[]; };
layout(set = 0, binding = 2) writeonly buffer C2 { uint16_t cache_halves[]; };
#include "kv_store_push.glsl"

void main() {
  const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint e = gl_GlobalInvocationID.x; e < total; e += stride) {
    const uint i = e % width, row = e / width;
    const uint head = row % heads, token = row / heads;
    const uint slot = uint(slots[slots_offset + token]);
    if (slot >= n_slots) continue;
    const float value = x[x_offset + head * x_head + token * x_token + i];
    const uint to = CacheRow(slot, head) + i;
    STORE_VALUE(cache_words, cache_halves, form, to, value)
  }
}
