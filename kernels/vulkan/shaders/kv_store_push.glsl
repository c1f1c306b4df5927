// Declares the parameters of the kv_store shaders. Strides of the cache are in its elements, or in
// words if it is a q8_kv cache.
layout(push_constant) uniform Push {
  uint width, total;  // elements (q8_kv: blocks of 32) of a row and of all rows
  uint heads, n_slots, block_positions;
  uint x_offset, x_head, x_token;
  uint slots_offset;
  uint cache_offset, cache_position, cache_head, cache_block;
};

uint CacheRow(uint slot, uint head) {
  return cache_offset + slot % block_positions * cache_position + head * cache_head +
         slot / block_positions * cache_block;
}
