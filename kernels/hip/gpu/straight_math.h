// Computes functions of the contract without branches, for devices that have no instruction for
// them. A branch costs more time than it saves if lanes of a wave take both sides. Branches also
// slow compilers down. Results equal those of kernels/quant/scalar.h and kernels/reference/math.h
// bit for bit.
#pragma once

#include <cstdint>

#include "kernels/quant/float_bits.h"
#include "kernels/quant/scalar.h"
#include "kernels/reference/math.h"

namespace trine::hip::straight {

constexpr float Canon(float x) {
  const float magnitude = quant::Abs(x);
  const float limit = x < 0.0f ? -quant::kHuge : quant::kHuge;
  const float bounded = magnitude > quant::kHuge ? limit : x;
  return magnitude >= quant::kTiny ? bounded : 0.0f;
}

constexpr float Exp(float x) {
  const float below = x > 44.0f ? 44.0f : x;
  return quant::FromBits(x < -44.0f ? 0u
                                    : quant::Bits(reference::Exp(below < -44.0f ? -44.0f : below)));
}

constexpr float Recip(float x) {
  const uint32_t sign = quant::Bits(x) & 0x80000000u;
  const uint32_t exponent = (quant::Bits(x) >> 23) & 0xffu;
  const uint32_t fraction = quant::Bits(x) & 0x7fffffu;
  const float m = quant::FromBits(0x3f800000u | fraction);
  float y = quant::FromBits(0x7ef311c7u - quant::Bits(m));
  for (int i = 0; i < 3; ++i) y = y * (2.0f - m * y);

  const uint32_t divisor = fraction | 0x800000u;
  const auto half_range = static_cast<int32_t>(divisor);
  auto quotient = static_cast<uint32_t>(y * 0x1p+24f);
  auto remainder = static_cast<int32_t>(0u - divisor * quotient);
  for (int i = 0; i < 2; ++i) {
    const bool more = 2 * remainder > half_range;
    quotient += more ? 1u : 0u;
    remainder -= more ? half_range : 0;
  }
  for (int i = 0; i < 2; ++i) {
    const bool less = 2 * remainder < -half_range;
    quotient -= less ? 1u : 0u;
    remainder += less ? half_range : 0;
  }
  const uint32_t usual = ((253u - exponent) << 23) + (quotient - 0x800000u);
  const uint32_t bits = sign | (fraction == 0 ? (254u - exponent) << 23 : usual);
  return quant::FromBits(exponent == 0 || exponent >= 253 ? 0u : bits);
}

}  // namespace trine::hip::straight
