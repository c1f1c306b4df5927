// Declares the weights, binding 0, as words of every size in which some layout is read.
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require

layout(set = 0, binding = 0) restrict readonly buffer Weights16 { uint16_t weights16[]; };
layout(set = 0, binding = 0) restrict readonly buffer Weights32 { uint weights32[]; };
layout(set = 0, binding = 0) restrict readonly buffer Weights64 { uvec2 weights64[]; };
layout(set = 0, binding = 0) restrict readonly buffer Weights128 { uvec4 weights128[]; };

// Files align blocks to two bytes, so `at` counts 16-bit words.
uint Half(uint at) { return uint(weights16[at]); }
uint Word(uint at) { return Half(at) | Half(at + 1) << 16; }
uvec4 Words(uint at) { return uvec4(Word(at), Word(at + 2), Word(at + 4), Word(at + 6)); }

// Converts a finite f16. A file with an infinite scale or a NaN is not loaded. For a denormal, the
// implicit bit is added and subtracted again, which is exact.
float FiniteF16(uint half_bits) {
  const uint magnitude = (half_bits & 0x7fffu) << 13;
  precise float tiny = uintBitsToFloat(magnitude + 0x38800000u) - uintBitsToFloat(0x38800000u);
  const uint bits = magnitude < 0x00800000u ? floatBitsToUint(tiny) : magnitude + 0x38000000u;
  return uintBitsToFloat(bits | (half_bits & 0x8000u) << 16);
}
