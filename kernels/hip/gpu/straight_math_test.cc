#include "kernels/hip/gpu/straight_math.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace trine::hip {
namespace {

using quant::Bits;
using quant::FromBits;

// Calls `function` with every 251st float of both signs, infinities and NaNs among them.
template <class Function>
void ForManyFloats(const Function& function) {
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 251) {
    function(FromBits(static_cast<uint32_t>(bits)));
  }
  for (const uint32_t bits : {0x7f800000u, 0xff800000u, 0x7fc00000u, 0x3f800000u, 0x80000000u}) {
    function(FromBits(bits));
  }
}

TEST(StraightMath, Canon) {
  ForManyFloats(
      [](float x) { ASSERT_EQ(Bits(straight::Canon(x)), Bits(quant::Canon(x))) << Bits(x); });
  for (const float edge : {quant::kTiny, quant::kHuge}) {
    for (const uint32_t near : {Bits(edge) - 1, Bits(edge), Bits(edge) + 1}) {
      for (const uint32_t sign : {0u, 0x80000000u}) {
        const float x = FromBits(near | sign);
        EXPECT_EQ(Bits(straight::Canon(x)), Bits(quant::Canon(x)));
      }
    }
  }
}

TEST(StraightMath, Recip) {
  ForManyFloats(
      [](float x) { ASSERT_EQ(Bits(straight::Recip(x)), Bits(quant::Recip(x))) << Bits(x); });
  for (uint32_t fraction = 0; fraction < 1u << 23; ++fraction) {  // all fractions
    const float x = FromBits(0x3f800000u | fraction);
    ASSERT_EQ(Bits(straight::Recip(x)), Bits(quant::Recip(x))) << fraction;
  }
}

TEST(StraightMath, Exp) {
  ForManyFloats([](float x) {
    if (x != x) return;  // NaN is never an argument
    ASSERT_EQ(Bits(straight::Exp(x)), Bits(reference::Exp(x))) << x;
  });
  for (const float x : {-44.0f, 44.0f, 0.0f}) {
    EXPECT_EQ(Bits(straight::Exp(x)), Bits(reference::Exp(x)));
  }
}

}  // namespace
}  // namespace trine::hip
