#include "kernels/quant/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/quant/test_util.h"

namespace trine::quant {
namespace {

uint32_t DivisionBits(float x) {
  volatile float one = 1.0f;  // divided at run time, by the hardware's IEEE instruction
  return Bits(one / x);
}

TEST(ScalarTest, RecipEqualsIeeeDivisionOverEveryFraction) {
  for (uint32_t exponent : {1u, 127u, 252u}) {
    uint32_t differences = 0;
    for (uint32_t fraction = 0; fraction < 0x800000u; ++fraction) {
      const float x = FromBits(exponent << 23 | fraction);
      differences += Bits(Recip(x)) != DivisionBits(x);
    }
    EXPECT_EQ(differences, 0u) << "exponent " << exponent;
  }
}

TEST(ScalarTest, RecipEqualsIeeeDivisionOverEveryExponent) {
  uint32_t differences = 0;
  for (uint32_t exponent = 1; exponent <= 252; ++exponent) {
    for (uint32_t fraction = exponent; fraction < 0x800000u; fraction += 4999) {
      const float x = FromBits(exponent << 23 | fraction);
      differences += Bits(Recip(x)) != DivisionBits(x);
      differences += Bits(Recip(-x)) != DivisionBits(-x);
    }
  }
  EXPECT_EQ(differences, 0u);
}

TEST(ScalarTest, RecipIsZeroOutsideItsDomain) {
  for (uint32_t bits : {0u, 0x80000000u, 1u, 0x7fffffu, 0x7e800000u, 0x7f800000u, 0x7fc00000u}) {
    EXPECT_EQ(Bits(Recip(FromBits(bits))), 0u) << std::hex << bits;
  }
}

TEST(ScalarTest, RoundGoesToTheNearestEven) {
  for (int i = -2000; i <= 2000; ++i) {
    const float x = static_cast<float>(i) * 0.25f;
    EXPECT_EQ(Round(x), static_cast<int32_t>(std::nearbyint(x))) << x;
  }
  EXPECT_EQ(Round(4194303.5f), 4194304);
  EXPECT_EQ(Round(-4194303.5f), -4194304);
}

TEST(ScalarTest, CanonKeepsItsRangeAndNothingElse) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Bits(Canon(kTiny)), Bits(kTiny));
  EXPECT_EQ(Bits(Canon(-kHuge)), Bits(-kHuge));
  EXPECT_EQ(Bits(Canon(std::nextafter(kTiny, 0.0f))), 0u);
  EXPECT_EQ(Bits(Canon(-std::nextafter(kTiny, 0.0f))), 0u);
  EXPECT_EQ(Bits(Canon(-0.0f)), 0u);
  EXPECT_EQ(Bits(Canon(FromBits(1))), 0u);
  EXPECT_EQ(Canon(std::nextafter(kHuge, infinity)), kHuge);
  EXPECT_EQ(Canon(-infinity), -kHuge);
  EXPECT_EQ(Bits(Canon(std::numeric_limits<float>::quiet_NaN())), 0u);
}

TEST(FloatBitsTest, EveryF16SurvivesTheWayThroughF32) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const bool is_nan = (half & 0x7fff) > 0x7c00;
    const uint16_t back = F32ToF16(F16ToF32(static_cast<uint16_t>(half)));
    EXPECT_EQ(back, is_nan ? (half & 0x8000) | 0x7e00 : half);
  }
}

TEST(FloatBitsTest, F16ValuesAreTheirDefinition) {
  for (uint16_t half = 0; half < 0x7c00; ++half) {
    const int exponent = half >> 10;
    const double value =
        exponent == 0 ? std::ldexp(half, -24) : std::ldexp(1024 + (half & 0x3ff), exponent - 25);
    EXPECT_EQ(static_cast<double>(F16ToF32(half)), value);
  }
}

TEST(FloatBitsTest, F32ToF16RoundsToNearestEven) {
  for (uint16_t half = 0; half < 0x7bff; ++half) {
    const uint16_t next = half + 1;
    const float midpoint = (F16ToF32(half) + F16ToF32(next)) * 0.5f;  // exact
    EXPECT_EQ(F32ToF16(midpoint), half % 2 == 0 ? half : next);
    EXPECT_EQ(F32ToF16(FromBits(Bits(midpoint) - 1)), half);
    EXPECT_EQ(F32ToF16(FromBits(Bits(midpoint) + 1)), next);
  }
  EXPECT_EQ(F32ToF16(65519.996f), 0x7bff);
  EXPECT_EQ(F32ToF16(65520.0f), 0x7c00);
  EXPECT_EQ(F32ToF16Saturated(1e30f), 0x7bff);
  EXPECT_EQ(F32ToF16Saturated(-65520.0f), 0xfbff);
}

TEST(FloatBitsTest, F32ToBf16RoundsToNearestEven) {
  EXPECT_EQ(F32ToBf16(FromBits(0x3f808000)), 0x3f80);
  EXPECT_EQ(F32ToBf16(FromBits(0x3f818000)), 0x3f82);
  EXPECT_EQ(F32ToBf16(FromBits(0x3f808001)), 0x3f81);
  EXPECT_EQ(F32ToBf16(FromBits(0xbf807fff)), 0xbf80);
  EXPECT_EQ(F32ToBf16(FromBits(0x7f800001)) & 0x7fff, 0x7fc0);
  for (uint32_t half = 0; half <= 0x7f80; ++half) {
    EXPECT_EQ(F32ToBf16(Bf16ToF32(static_cast<uint16_t>(half))), half);
  }
}

}  // namespace
}  // namespace trine::quant
