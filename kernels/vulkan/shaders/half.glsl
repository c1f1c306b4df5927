// Converts f16 and bf16 as bit patterns, with integers alone (kernels/quant/float_bits.h).

// Exact for every f16. Has no branches, because it is most of the work of reading a cache.
float F16ToF32(uint half_bits) {
  const uint magnitude = half_bits & 0x7fffu;
  const uint normal = (magnitude << 13) + (magnitude >= 0x7c00u ? 0x70000000u : 0x38000000u);
  // fraction * 2^-24, from the exact float of the integer
  const uint denormal = floatBitsToUint(float(magnitude)) - (24u << 23);
  const uint small = magnitude == 0u ? 0u : denormal;
  return uintBitsToFloat((half_bits & 0x8000u) << 16 | (magnitude < 0x400u ? small : normal));
}

// Rounds to nearest even, denormals too. Magnitudes above 65504 become 65504; NaN becomes the quiet
// NaN 7E00.
uint F32ToF16Saturated(float x) {
  const uint bits = floatBitsToUint(x);
  const uint sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477fe000u) return sign | 0x7bffu;
  if (magnitude >= 0x38800000u) {  // 2^-14, the least normal f16
    return sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13);
  }
  if (magnitude <= 0x33000000u) return sign;  // 2^-25, half the least denormal f16
  const uint shift = 126u - (magnitude >> 23);
  const uint mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  const uint rest = mantissa & ((1u << shift) - 1u), midpoint = 1u << (shift - 1u);
  const uint down = mantissa >> shift;
  const bool up = rest > midpoint || (rest == midpoint && (down & 1u) != 0u);
  return sign | (up ? down + 1u : down);
}

float Bf16ToF32(uint half_bits) { return uintBitsToFloat(half_bits << 16); }

// Rounds to nearest even; NaNs stay NaNs.
uint F32ToBf16(float x) {
  const uint bits = floatBitsToUint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}
