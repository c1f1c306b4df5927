// f32, f16 and bf16 weights, in file form or (f16) packed.
#include "weight_buffer.glsl"

// Value i of the row that begins at byte `row` of a file, or at 16-byte word `row` of the packed
// layout of f16: runs of 256 values as 32 16-byte words, where word j holds the values of class j,
// and behind the last whole run runs of 64 as 32 words of two values.
float LoadWeight(uint row, uint values, uint i) {
  if (PACKED) {
    const uint run = i & ~255u, pair = (i & 255u) / 64, lane = i & 31u;
    const bool whole = run + 256 <= values;
    const uint word = row * 4 + run / 2 + (whole ? lane * 4 + pair : pair * 32 + lane);
    return FiniteF16((weights32[word] >> ((i & 32u) / 2)) & 0xffffu);
  }
  if (FORMAT == kF32) return uintBitsToFloat(weights32[row / 4 + i]);
  const uint bits = Half(row / 2 + i);
  return FORMAT == kF16 ? FiniteF16(bits) : Bf16ToF32(bits);
}
