// Prepares attention in one run: rotates q and k as rope.comp does, stores k and v in their caches
// as kv_store.comp does. q or v may be absent; k may be rotated or not, stored or not.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_16bit_storage : require
#include "exact.glsl"
#include "half.glsl"
#include "rotate.glsl"
#include "store_value.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool halves = false;  // pairs (i, i + pairs); false: (2i, 2i + 1)
layout(constant_id = 2) const uint pairs = 0;       // 0: nothing is rotated
layout(constant_id = 3) const uint width = 64;      // width of a head of q and k
layout(constant_id = 4) const uint value_width = 0;
layout(constant_id = 5) const uint q_heads = 0;
layout(constant_id = 6) const uint kv_heads = 1;
layout(constant_id = 7) const uint block_positions = 64;
layout(constant_id = 8) const uint key_form = 3;  // a kStore...; 3: k is not stored
layout(constant_id = 9) const uint value_form = 3;
layout(constant_id = 10) const bool writes_k = false;  // also writes the rotated k, for other ops
layout(set = 0, binding = 0) readonly buffer Q { float q[]; };
layout(set = 0, binding = 1) readonly buffer K { float k[]; };
layout(set = 0, binding = 2) readonly buffer V { float v[]; };
layout(set = 0, binding = 3) readonly buffer T { float table[]; };
layout(set = 0, binding = 4) readonly buffer Slots { int slots[]; };
layout(set = 0, binding = 5) writeonly buffer RotatedQ { float rotated_q[]; };
layout(set = 0, binding = 6) writeonly buffer RotatedK { float rotated_k[]; };
layout(set = 0, binding = 7) writeonly buffer KC4 { float key_words[]; };
layout(set = 0, binding = 7) writeonly buffer KC2 { uint16_t key_halves[]; };
layout(set = 0, binding = 8) writeonly buffer VC4 { float value_words[]; };
layout(set = 0, binding = 8) writeonly buffer VC2 { uint16_t value_halves[]; };

struct Heads {
  uint offset, head, token;
};
struct Cache {
  uint offset, position, head, block;
};
layout(push_constant) uniform Push {
  uint tokens, n_slots;
  uint table_offset, table_token, slots_offset;
  Heads q_at, k_at, v_at, rotated_q_at, rotated_k_at;
  Cache key_cache, value_cache;
};

const uint kItems = width - pairs;  // items of a head: pairs and copied values
const uint kItemsOfQ = q_heads * kItems, kItemsOfK = kv_heads * kItems;
const uint kItemsOfToken = kItemsOfQ + kItemsOfK + kv_heads * value_width;

uint RowOf(Heads at, uint head, uint token) {
  return at.offset + head * at.head + token * at.token;
}

uint CacheRow(Cache cache, uint slot, uint head) {
  return cache.offset + slot % block_positions * cache.position + head * cache.head +
         slot / block_positions * cache.block;
}

// Returns where the two values of an item are in a row. For a copied value both are the same place.
uvec2 PlacesOf(uint item) {
  if (item >= pairs) return uvec2(item + pairs);
  return halves ? uvec2(item, item + pairs) : uvec2(2u * item, 2u * item + 1u);
}

vec2 RotatedItem(uint item, uint token, vec2 values) {
  if (item >= pairs) return values;
  const uint at = table_offset + token * table_token + item;
  return Rotated(values.x, values.y, table[at], table[at + pairs]);
}

void RotateQ(uint e, uint token) {
  const uint item = e % kItems, head = e / kItems, from = RowOf(q_at, head, token);
  const uvec2 places = PlacesOf(item);
  const vec2 values = RotatedItem(item, token, vec2(q[from + places.x], q[from + places.y]));
  const uint to = RowOf(rotated_q_at, head, token);
  rotated_q[to + places.x] = values.x;
  rotated_q[to + places.y] = values.y;
}

void RotateAndStoreK(uint e, uint token) {
  const uint item = e % kItems, head = e / kItems, from = RowOf(k_at, head, token);
  const uvec2 places = PlacesOf(item);
  const vec2 values = RotatedItem(item, token, vec2(k[from + places.x], k[from + places.y]));
  if (writes_k) {
    const uint to = RowOf(rotated_k_at, head, token);
    rotated_k[to + places.x] = values.x;
    rotated_k[to + places.y] = values.y;
  }
  if (key_form > kStoreBf16) return;
  const uint slot = uint(slots[slots_offset + token]);
  if (slot >= n_slots) return;
  const uint row = CacheRow(key_cache, slot, head);
  STORE_VALUE(key_words, key_halves, key_form, row + places.x, values.x)
  STORE_VALUE(key_words, key_halves, key_form, row + places.y, values.y)
}

void StoreV(uint e, uint token) {
  const uint i = e % value_width, head = e / value_width;
  const uint slot = uint(slots[slots_offset + token]);
  if (slot >= n_slots) return;
  const float value = v[RowOf(v_at, head, token) + i];
  const uint to = CacheRow(value_cache, slot, head) + i;
  STORE_VALUE(value_words, value_halves, value_form, to, value)
}

void main() {
  const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x, total = tokens * kItemsOfToken;
  for (uint e = gl_GlobalInvocationID.x; e < total; e += stride) {
    const uint token = e / kItemsOfToken, item = e % kItemsOfToken;
    if (item < kItemsOfQ) {
      RotateQ(item, token);
    } else if (item < kItemsOfQ + kItemsOfK) {
      RotateAndStoreK(item - kItemsOfQ, token);
    } else {
      StoreV(item - kItemsOfQ - kItemsOfK, token);
    }
  }
}
