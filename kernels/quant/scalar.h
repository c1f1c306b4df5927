// The scalar operations that quantisation needs: canon, reciprocal, rounding to an integer.
//
// They use only add, subtract, multiply, compare and integer instructions, and each float result is
// rounded to binary32: files that include this one are compiled with -ffp-contract=off. Operations
// that only ops of graphs need are in kernels/reference/math.h.
#pragma once

#include <cstdint>

#include "kernels/quant/float_bits.h"

namespace trine::quant {

inline constexpr float kTiny = 0x1p-50f;
inline constexpr float kHuge = 0x1p+50f;

static constexpr float Abs(float x) { return FromBits(Bits(x) & 0x7fffffffu); }

// Returns the canonical value: +0, or a magnitude in [2^-50, 2^50]. Ops output canonical values
// only. The product of two canonical values is a normal number or 0, so it does not matter how a
// device treats denormals, -0, infinity and NaN.
static constexpr float Canon(float x) {
  const float magnitude = Abs(x);
  if (!(magnitude >= kTiny)) return 0.0f;  // also when x is NaN
  if (magnitude > kHuge) return x < 0.0f ? -kHuge : kHuge;
  return x;
}

// Returns the nearest integer, ties to even. REQUIRES: abs(x) < 2^22. Adding 1.5 * 2^23 leaves the
// integer in the low bits of the sum; reading them as bits leaves a compiler nothing to cancel.
static constexpr int32_t Round(float x) {
  return static_cast<int32_t>(Bits(x + 12582912.0f) - 0x4b400000u);
}

// Returns 1/x, correctly rounded, for 2^-126 <= abs(x) < 2^126; +0 elsewhere.
//
// Newton's iteration comes within two units of the quotient of 24-bit mantissas, and the exact
// integer remainder decides the rest, so the result does not depend on the iteration.
static constexpr float Recip(float x) {
  const uint32_t sign = Bits(x) & 0x80000000u;
  const uint32_t exponent = (Bits(x) >> 23) & 0xffu;
  const uint32_t fraction = Bits(x) & 0x7fffffu;
  if (exponent == 0 || exponent >= 253) return 0.0f;
  if (fraction == 0) return FromBits(sign | ((254 - exponent) << 23));

  const float m = FromBits(0x3f800000u | fraction);  // in (1, 2)
  float y = FromBits(0x7ef311c7u - Bits(m));
  for (int i = 0; i < 3; ++i) y = y * (2.0f - m * y);

  // quotient ~ 2^47 / divisor. The remainder 2^47 - divisor*quotient is small, so it survives
  // arithmetic modulo 2^32, where 2^47 is 0.
  const uint32_t divisor = fraction | 0x800000u;
  const int32_t half_range = static_cast<int32_t>(divisor);
  uint32_t quotient = static_cast<uint32_t>(y * 0x1p+24f);
  int32_t remainder = static_cast<int32_t>(0u - divisor * quotient);
  for (int i = 0; i < 2; ++i) {
    if (2 * remainder > half_range) ++quotient, remainder -= half_range;
  }
  for (int i = 0; i < 2; ++i) {
    if (2 * remainder < -half_range) --quotient, remainder += half_range;
  }
  return FromBits(sign | (((253 - exponent) << 23) + (quotient - 0x800000u)));
}

// Returns whether Canon(x) has the bits of x. Has no branch, so that loops over it are vectorised.
static constexpr bool IsCanonical(float x) {
  const uint32_t bits = Bits(x), least = Bits(kTiny);
  return (((bits & 0x7fffffffu) - least) <= Bits(kHuge) - least) | (bits == 0);
}

}  // namespace trine::quant
