#include "runtime/sampling/exact_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/quant/test_util.h"
#include "runtime/sampling/philox.h"

namespace trine {
namespace {

double RandomDouble(int low, int high, quant::Random* random) {
  const auto exponent = static_cast<uint64_t>(1023 + low + random->Below(high - low + 1));
  return std::bit_cast<double>((random->Next() & 0xfffffffffffffull) | exponent << 52);
}

double UlpError(double got, double want) {
  return std::abs(got - want) / std::ldexp(1.0, std::ilogb(want) - 52);
}

TEST(ExactLogTest, IsWithin2_1UlpOfLibm) {
  quant::Random random(3);
  double worst = 0.0;
  for (int i = 0; i < 200000; ++i) {
    const double x = RandomDouble(-1022, 1023, &random);
    worst = std::max(worst, UlpError(ExactLog(x), std::log(x)));
  }
  // Around 1 the result is small, so that every rounding counts.
  for (int i = 0; i < 200000; ++i) {
    const double x = RandomDouble(-1, 0, &random);
    if (x != 1.0) worst = std::max(worst, UlpError(ExactLog(x), std::log(x)));
  }
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_LT(worst, 2.1);
  EXPECT_GT(worst, 0.4);  // the comparison is not vacuous
}

TEST(ExactLogTest, KnowsItsFixedPoints) {
  EXPECT_EQ(ExactLog(1.0), 0.0);
  EXPECT_EQ(ExactLog(2.0), kLn2);
  EXPECT_EQ(ExactLog(0.5), -kLn2);
  EXPECT_EQ(kLn2, std::log(2.0));
  EXPECT_NEAR(ExactLog(10.0), 2.302585092994046, 5e-16);
}

TEST(ExactLogTest, KeepsItsBits) {
  const auto hash = [] {
    quant::Random random(7);
    quant::Hash value;
    for (int i = 0; i < 100000; ++i) {
      const double y = ExactLog(RandomDouble(i % 2 ? -1 : -70, i % 2 ? 0 : 70, &random));
      value.Add(&y, sizeof(y));
    }
    return value.value();
  };
  EXPECT_EQ(hash(), 0xae74fef98178cd84ull);
  const quant::ScopedFlushToZero flush;
  EXPECT_EQ(hash(), 0xae74fef98178cd84ull);
}

// The test vectors published with the generator.
TEST(PhiloxTest, GivesThePublishedNumbers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, DrawsUseBothHalvesOfSeedAndNumber) {
  EXPECT_EQ(RandomDraw(0, 0), 0xe169c58d6627e8d5ull);
  EXPECT_NE(RandomDraw(1ull << 32, 0), RandomDraw(0, 0));
  EXPECT_NE(RandomDraw(1, 0), RandomDraw(0, 0));
  EXPECT_NE(RandomDraw(0, 1ull << 32), RandomDraw(0, 0));
  EXPECT_NE(RandomDraw(0, 1), RandomDraw(0, 0));
}

TEST(PhiloxTest, ScalesLikeAWideProduct) {
  quant::Random random(9);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t a = random.Next() >> random.Below(64);
    const uint64_t b = random.Next() >> random.Below(64);
    __extension__ using Wide = unsigned __int128;
    ASSERT_EQ(ScaleRandom(a, b), static_cast<uint64_t>(static_cast<Wide>(a) * b >> 64));
  }
  EXPECT_EQ(ScaleRandom(~0ull, ~0ull), ~0ull - 1);
}

}  // namespace
}  // namespace trine
