// Reads f32, f16 and bf16 weights, in the file's form or (f16 only) packed.
#include "product/weight_buffer.glsl"

// Returns values lane, lane + 32, ... of the run of 256 that begins at value `run`, two in each
// component; beyond the row's end, any value. `row` counts 16-byte words.
//
// The packed layout of f16 has runs of 256 values as 32 16-byte words, where word j holds the
// values of class j; after the last whole run it has runs of 64 as 32 words of two values.
uvec4 LoadPackedRun(uint row, uint values, uint run, uint lane) {
  if (run + 256 <= values) return weights128[row + run / 8 + lane];
  const uint at = row * 4 + run / 2 + lane, last = (values - run - 1) / 64;
  return uvec4(weights32[at], weights32[at + min(1u, last) * 32],
               weights32[at + min(2u, last) * 32], weights32[at + min(3u, last) * 32]);
}

// Returns value i of the row that begins at byte `row` of a file, or at 16-byte word `row` of the
// packed layout.
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
