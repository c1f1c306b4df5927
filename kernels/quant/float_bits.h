// Converts f16 and bf16 as bit patterns, with integer arithmetic alone.
//
// The functions use no float instructions, so flush-to-zero modes and missing half-precision
// hardware have no effect. Like everything inline in this folder they have internal linkage: the
// linker must not use a copy compiled for one instruction set in code compiled for another.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__FAST_MATH__)
#error "The arithmetic of this project is defined: build it without -ffast-math or -Ofast"
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
#error "Every float operation rounds to binary32: on 32-bit x86 build with -msse2 -mfpmath=sse"
#endif

namespace trine::quant {

static constexpr uint32_t Bits(float x) { return std::bit_cast<uint32_t>(x); }
static constexpr float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

inline constexpr float kF16Max = 65504.0f;

// Converts every f16 exactly, denormals, infinities and NaNs included.
static constexpr float F16ToF32(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {
    if (fraction == 0) return FromBits(sign);
    return FromBits(sign | (Bits(static_cast<float>(fraction)) - (24u << 23)));  // fraction * 2^-24
  }
  if (exponent == 31) return FromBits(sign | 0x7f800000u | (fraction << 13));
  return FromBits(sign | ((exponent + 112) << 23) | (fraction << 13));
}

// Rounds to nearest even, keeps denormals, overflows to infinity. Every NaN becomes the quiet 7E00.
static constexpr uint16_t F32ToF16(float x) {
  const uint32_t bits = Bits(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00;
  } else if (magnitude >= 0x477ff000u) {  // 65520, halfway between 65504 and 2^16
    half = 0x7c00;
  } else if (magnitude >= 0x38800000u) {  // 2^-14, the least normal f16
    const uint32_t round_up = 0xfffu + ((magnitude >> 13) & 1u);
    half = (magnitude - 0x38000000u + round_up) >> 13;
  } else if (magnitude > 0x33000000u) {  // 2^-25, half the least denormal f16
    const uint32_t shift = 126 - (magnitude >> 23);
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t rest = mantissa & ((1u << shift) - 1);
    const uint32_t midpoint = 1u << (shift - 1);
    half = mantissa >> shift;
    if (rest > midpoint || (rest == midpoint && (half & 1u))) ++half;
  }
  return static_cast<uint16_t>(sign | half);
}

// Converts as F32ToF16 does, but clamps magnitudes to 65504: an infinity in a KV cache, times a
// probability of zero, would be a NaN.
static constexpr uint16_t F32ToF16Saturated(float x) {
  if (x > kF16Max) x = kF16Max;
  if (x < -kF16Max) x = -kF16Max;
  return F32ToF16(x);
}

static constexpr float Bf16ToF32(uint16_t half) {
  return FromBits(static_cast<uint32_t>(half) << 16);
}

// Rounds to nearest even; NaNs stay NaNs.
static constexpr uint16_t F32ToBf16(float x) {
  const uint32_t bits = Bits(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace trine::quant
