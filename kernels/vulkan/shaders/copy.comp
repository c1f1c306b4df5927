// y = x: moves bytes of one type by the largest unit that fits, or converts f32, f16 and bf16.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#include "exact.glsl"
#include "half.glsl"
#include "place.glsl"

// How one element is stored, in x and in y: the values of CopyForm in simple.cc.
const uint kWord = 0, kHalf = 1, kByte = 2, kF32 = 3, kF16 = 4, kBf16 = 5;

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint from = kWord;
layout(constant_id = 2) const uint to = kWord;
layout(set = 0, binding = 0) readonly buffer X4 { uint x_words[]; };
layout(set = 0, binding = 0) readonly buffer X2 { uint16_t x_halves[]; };
layout(set = 0, binding = 0) readonly buffer X1 { uint8_t x_bytes[]; };
layout(set = 0, binding = 1) writeonly buffer Y4 { uint y_words[]; };
layout(set = 0, binding = 1) writeonly buffer Y2 { uint16_t y_halves[]; };
layout(set = 0, binding = 1) writeonly buffer Y1 { uint8_t y_bytes[]; };
layout(push_constant) uniform Push {
  uint n0, n1, n2, total;
  Place x_at, y_at;
};

// Returns the bits of element i. For a conversion, returns the bits of the element as f32.
uint Load(uint i) {
  switch (from) {
    case kHalf:
      return uint(x_halves[i]);
    case kByte:
      return uint(x_bytes[i]);
    case kF16:
      return floatBitsToUint(F16ToF32(uint(x_halves[i])));
    case kBf16:
      return floatBitsToUint(Bf16ToF32(uint(x_halves[i])));
    default:
      return x_words[i];
  }
}

void Store(uint i, uint bits) {
  switch (to) {
    case kHalf:
      y_halves[i] = uint16_t(bits);
      break;
    case kByte:
      y_bytes[i] = uint8_t(bits);
      break;
    case kF16:
      y_halves[i] = uint16_t(F32ToF16Saturated(uintBitsToFloat(bits)));
      break;
    case kBf16:
      y_halves[i] = uint16_t(F32ToBf16(uintBitsToFloat(bits)));
      break;
    case kF32:
      y_words[i] = floatBitsToUint(Canon(uintBitsToFloat(bits)));
      break;
    default:
      y_words[i] = bits;
  }
}

void main() {
  const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint e = gl_GlobalInvocationID.x; e < total; e += stride) {
    uint i = e;
    RowIndex row = RowIndex(0u, 0u, 0u);
    if (total != n0) {
      i = e % n0;
      row = IndexOfRow(e / n0, n1, n2);
    }
    Store(RowAt(y_at, row) + i, Load(RowAt(x_at, row) + i));
  }
}
