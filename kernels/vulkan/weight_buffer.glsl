// The weights, binding 0, as words of each size that a layout is read in.
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require

layout(set = 0, binding = 0) restrict readonly buffer Weights16 { uint16_t weights16[]; };
layout(set = 0, binding = 0) restrict readonly buffer Weights32 { uint weights32[]; };
layout(set = 0, binding = 0) restrict readonly buffer Weights64 { uvec2 weights64[]; };
layout(set = 0, binding = 0) restrict readonly buffer Weights128 { uvec4 weights128[]; };

// Files align blocks to two bytes: `at` counts 16-bit words.
uint Half(uint at) { return uint(weights16[at]); }
uint Word(uint at) { return Half(at) | Half(at + 1) << 16; }
uvec4 Words(uint at) { return uvec4(Word(at), Word(at + 2), Word(at + 4), Word(at + 6)); }

// A finite f16, as scales are: no file with others is loaded. Of a denormal one the implicit bit is
// put on and taken off again, which is exact.
float FiniteF16(uint half_bits) {
  const uint magnitude = (half_bits & 0x7fffu) << 13;
  precise float tiny = uintBitsToFloat(magnitude + 0x38800000u) - uintBitsToFloat(0x38800000u);
  const uint bits = magnitude < 0x00800000u ? floatBitsToUint(tiny) : magnitude + 0x38000000u;
  return uintBitsToFloat(bits | (half_bits & 0x8000u) << 16);
}
