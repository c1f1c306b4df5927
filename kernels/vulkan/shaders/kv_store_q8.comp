// Does kv_store into a q8_kv cache. A block is an f32 scale and 32 signed bytes, nine words in all.
// 32 invocations read a block; eight of them write its bytes, one writes its scale.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "math.glsl"

layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer Slots { int slots[]; };
layout(set = 0, binding = 2) writeonly buffer Cache { uint cache[]; };
#include "kv_store_push.glsl"

shared float values[gl_WorkGroupSize.x];

uint QuantizedByte(float value, float inverse) {
  precise float scaled = value * inverse;
  return uint(clamp(Round(scaled), -127, 127)) & 255u;
}

// Quantises the 32 values that begin at `first`. 32 invocations share the work; `lane` is this
// one's number.
void StoreBlock(uint first, uint lane, uint to) {
  uint largest = 0u;  // magnitudes compare as integers
  for (uint i = 0u; i < 32u; ++i) {
    largest = max(largest, floatBitsToUint(values[first + i]) & 0x7fffffffu);
  }
  const bool empty = largest < 0x30800000u;  // 2^-30
  precise float d = uintBitsToFloat(largest) * uintBitsToFloat(0x3c010204u);
  if (lane == 8u) cache[to] = empty ? 0u : floatBitsToUint(d);
  if (lane >= 8u) return;
  uint word = 0u;
  if (!empty) {
    const float inverse = Recip(d);
    for (uint i = 0u; i < 4u; ++i) {
      word |= QuantizedByte(values[first + 4u * lane + i], inverse) << (8u * i);
    }
  }
  cache[to + 1u + lane] = word;
}

void main() {
  const uint lane = gl_LocalInvocationID.x, group_blocks = gl_WorkGroupSize.x / 32u;
  const uint mine = lane / 32u, stride = gl_NumWorkGroups.x * group_blocks;
  for (uint base = gl_WorkGroupID.x * group_blocks; base < total; base += stride) {
    const uint block = base + mine;
    const uint column = block % width, row = block / width;
    const uint head = row % heads, token = row / heads;
    const bool inside = block < total;
    const uint slot = inside ? uint(slots[slots_offset + token]) : n_slots;
    if (slot < n_slots) {
      values[lane] = x[x_offset + head * x_head + token * x_token + 32u * column + lane % 32u];
    }
    barrier();
    if (slot < n_slots) StoreBlock(32u * mine, lane % 32u, CacheRow(slot, head) + 9u * column);
    barrier();
  }
}
