#include "kernels/reference/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/quant/test_util.h"

namespace trine::reference {
namespace {

// Returns the distance in units of the last place of the true value.
double UlpError(float got, double want) {
  const int exponent = std::max(std::ilogb(want), -126);
  return std::abs(static_cast<double>(got) - want) / std::ldexp(1.0, exponent - 23);
}

// Calls visit(x) for floats of both signs over the binary exponents [low, high].
template <typename Visit>
void Sweep(int low, int high, int per_exponent, Visit visit) {
  quant::Random random(5);
  for (int exponent = low; exponent <= high; ++exponent) {
    for (int i = 0; i < per_exponent; ++i) visit(random.Wide(exponent, exponent));
  }
}

TEST(MathTest, SqrtEqualsIeeeOverEveryFraction) {
  for (uint32_t exponent : {1u, 127u, 128u, 254u}) {
    uint32_t differences = 0;
    for (uint32_t fraction = 0; fraction < 0x800000u; ++fraction) {
      const float x = FromBits(exponent << 23 | fraction);
      differences += Bits(Sqrt(x)) != Bits(std::sqrt(x));
    }
    EXPECT_EQ(differences, 0u) << "exponent " << exponent;
  }
}

TEST(MathTest, SqrtEqualsIeeeOverEveryExponent) {
  uint32_t differences = 0;
  for (uint32_t exponent = 1; exponent <= 254; ++exponent) {
    for (uint32_t fraction = exponent; fraction < 0x800000u; fraction += 4999) {
      const float x = FromBits(exponent << 23 | fraction);
      differences += Bits(Sqrt(x)) != Bits(std::sqrt(x));
    }
  }
  EXPECT_EQ(differences, 0u);
  for (uint32_t bits : {0u, 0x80000000u, 1u, 0xbf800000u, 0x7f800000u, 0x7fc00000u}) {
    EXPECT_EQ(Bits(Sqrt(FromBits(bits))), 0u) << std::hex << bits;
  }
}

TEST(MathTest, RsqrtIsWithin1_5Ulp) {
  double worst = 0.0;
  Sweep(-126, 127, 20000, [&](float x) {
    x = Abs(x);
    worst = std::max(worst, UlpError(Rsqrt(x), 1.0 / std::sqrt(static_cast<double>(x))));
  });
  EXPECT_LT(worst, 1.5);
}

TEST(MathTest, ExpIsWithin1_17Ulp) {
  double worst = 0.0;
  Sweep(-50, 5, 100000, [&](float x) {
    if (Abs(x) <= 44.0f) worst = std::max(worst, UlpError(Exp(x), std::exp(double{x})));
  });
  EXPECT_LT(worst, 1.17);
}

TEST(MathTest, ExpEndsAreFlat) {
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-0.0f), 1.0f);
  EXPECT_EQ(Exp(-44.0f * 1.000001f), 0.0f);
  EXPECT_EQ(Exp(-kHuge), 0.0f);
  EXPECT_EQ(Exp(kHuge), Exp(44.0f));
  EXPECT_GE(Exp(-44.0f), 0x1p-64f);
  EXPECT_LE(Exp(44.0f), 0x1p+64f);
}

TEST(MathTest, SiluIsWithin2_9Ulp) {
  double worst = 0.0;
  Sweep(-49, 6, 50000, [&](float x) {
    const double want = x / (1.0 + std::exp(-double{x}));
    if (x > -30.0f && std::abs(want) > 1e-14) worst = std::max(worst, UlpError(Silu(x), want));
  });
  EXPECT_LT(worst, 2.9);
}

// The relative error of e^u grows with u: its bound holds near the origin, the absolute one always.
TEST(MathTest, GeluIsCloseToTheTanhForm) {
  double worst_ulp = 0.0, worst_absolute = 0.0;
  Sweep(-49, 4, 50000, [&](float x) {
    const double u = 2.0 * std::sqrt(2.0 / M_PI) * (x + 0.044715 * std::pow(double{x}, 3));
    const double want = x / (1.0 + std::exp(-u));
    if (Abs(x) < 1.0f) worst_ulp = std::max(worst_ulp, UlpError(Gelu(x), want));
    worst_absolute = std::max(worst_absolute, std::abs(Gelu(x) - want) / std::max(1.0f, Abs(x)));
  });
  EXPECT_LT(worst_ulp, 3.6);
  EXPECT_LT(worst_absolute, 1.6e-7);
}

TEST(MathTest, TanhIsWithin1_8e7Absolute) {
  double worst = 0.0;
  Sweep(-49, 6, 50000,
        [&](float x) { worst = std::max(worst, std::abs(Tanh(x) - std::tanh(double{x}))); });
  EXPECT_LT(worst, 1.8e-7);
  EXPECT_EQ(Tanh(kHuge), 1.0f);
  EXPECT_EQ(Tanh(-kHuge), -1.0f);
}

TEST(MathTest, SigmoidAndSoftcapReachTheirLimits) {
  EXPECT_EQ(Sigmoid(100.0f), 1.0f);
  EXPECT_EQ(Sigmoid(0.0f), 0.5f);
  EXPECT_EQ(Sigmoid(-100.0f), 0.0f);
  EXPECT_EQ(SoftcapValue(kHuge, 30.0f, Recip(30.0f)), 30.0f);
  EXPECT_NEAR(SoftcapValue(10.0f, 30.0f, Recip(30.0f)), 30.0 * std::tanh(1.0 / 3.0), 1e-5);
}

using Function = float (*)(float);

struct MathGolden {
  const char* name;
  Function function;
  bool canonical;  // is the argument canonical, or any float?
  uint64_t hash;
};

float CapBy30(float x) { return SoftcapValue(x, 30.0f, Recip(30.0f)); }
float ThroughF16(float x) { return F16ToF32(F32ToF16(x)); }
float SaturatedF16(float x) { return F16ToF32(F32ToF16Saturated(x)); }
float ThroughBf16(float x) { return Bf16ToF32(F32ToBf16(x)); }
float RoundedInteger(float x) { return static_cast<float>(Round(std::clamp(x, -4e6f, 4e6f))); }

uint64_t HashOf(const MathGolden& golden) {
  quant::Hash hash;
  const int low = golden.canonical ? -50 : -126;
  const int high = golden.canonical ? 49 : 127;
  Sweep(low, high, 500, [&](float x) { hash.Add(golden.function(x)); });
  for (float x : {0.0f, kTiny, -kTiny, kHuge, -kHuge, 1.0f, -1.0f, 44.0f, -44.0f, 16.0f, -16.0f}) {
    hash.Add(golden.function(x));
  }
  return hash.value();
}

// Any compiler, flag, processor or rounding mode that deviates changes one of these hashes.
TEST(MathTest, EveryFunctionKeepsItsBits) {
  const MathGolden goldens[] = {
      {"canon", Canon, false, 0xafb74e8b97f11e55},
      {"recip", Recip, false, 0x07d66926b29ce110},
      {"sqrt", Sqrt, false, 0x595b2d5dc752c668},
      {"rsqrt", Rsqrt, false, 0x2d47ee836502bd67},
      {"round", RoundedInteger, true, 0x3909b3c2ed7dac17},
      {"exp", Exp, true, 0x77806577e3cdf32b},
      {"sigmoid", Sigmoid, true, 0xd399b01f3d0036d9},
      {"silu", Silu, true, 0x0dac9377aa1ec1ef},
      {"gelu", Gelu, true, 0x979791686891f0f8},
      {"tanh", Tanh, true, 0x0bb5da264571222b},
      {"relu", Relu, true, 0x55d15fa3cf7735ca},
      {"softcap", CapBy30, true, 0x0cf59f72452dea18},
      {"f16", ThroughF16, false, 0xdbacfefd67b836e4},
      {"saturated f16", SaturatedF16, true, 0x90f3ef5d5db49fe2},
      {"bf16", ThroughBf16, false, 0xa72d12a6707da2bc},
  };
  for (const MathGolden& golden : goldens) {
    EXPECT_EQ(HashOf(golden), golden.hash)
        << golden.name << std::hex << " gave 0x" << HashOf(golden);
    const quant::ScopedFlushToZero flush;
    EXPECT_EQ(HashOf(golden), golden.hash) << golden.name << " with denormals flushed";
  }
}

}  // namespace
}  // namespace trine::reference
