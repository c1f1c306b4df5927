// Reads the packed layouts of packed_rows.h as a Group. `row` counts 16-byte words; a row of the
// layout has `blocks` blocks of 32 values.
#include "product/weight_group.glsl"

// Returns the 16-bit number `index`, counted from 16-byte word `at`.
uint PackedHalf(uint at, uint index) {
  return (weights32[at * 4 + (index >> 1)] >> (16 * (index & 1u))) & 0xffffu;
}

Group LoadPackedGroup(uint row, uint blocks, uint block) {
  Group g;
  g.d = g.dmin = 0.0;
  g.scale = ivec2(1);
  g.min = ivec2(-1);
  if (FORMAT == kQ8_0) {
    // Chunks of eight blocks: the first halves of all blocks, then the second halves.
    const uint in_chunk = min(8u, blocks - (block & ~7u));
    const uint at = row + block + (block & ~7u);
    g.low = weights128[at];
    g.high = weights128[at + in_chunk];
    g.d = FiniteF16(PackedHalf(row + 2 * blocks, block));
    return g;
  }
  SetNibbles(weights128[row + block], g);
  const uint rest = row + blocks;  // the rest of the row, after the nibbles
  if (FORMAT == kQ4_0) {
    g.d = FiniteF16(PackedHalf(rest, block));
  } else if (FORMAT == kQ6_K) {
    const uvec2 top = weights64[rest * 2 + block];
    const uint scales = PackedHalf(rest + blocks / 2, block);
    const uvec4 shifts = uvec4(0, 2, 4, 6);
    g.low |= ((uvec4(top.x) >> shifts) & 0x03030303u) << 4;
    g.high |= ((uvec4(top.y) >> shifts) & 0x03030303u) << 4;
    g.scale = ivec2(SignedByte(scales, 0), SignedByte(scales, 1));
    g.d = FiniteF16(PackedHalf(rest + blocks / 2 + blocks / 8, block >> 3));
  } else {  // Q4_K and Q5_K
    uint headers = rest;
    if (FORMAT == kQ5_K) {
      const uint top = weights32[rest * 4 + block];
      g.low |= ((uvec4(top) >> uvec4(0, 1, 2, 3)) & 0x01010101u) << 4;
      g.high |= ((uvec4(top) >> uvec4(4, 5, 6, 7)) & 0x01010101u) << 4;
      headers += blocks / 4;
    }
    const uvec4 header = weights128[headers + (block >> 3)];
    g.d = FiniteF16(header.x & 0xffffu);
    g.dmin = FiniteF16(header.x >> 16);
    SetScaleAndMin(header.y, header.z, header.w, block & 7u, g);
  }
  return g;
}

Group LoadGroup(uint row, uint blocks, uint block) {
  if (PACKED) return LoadPackedGroup(row, blocks, block);
  return LoadFileGroup(row, block);
}
