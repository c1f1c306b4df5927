#include "runtime/model/arch/rope_table.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "gtest/gtest.h"
#include "kernels/quant/test_util.h"
#include "runtime/model/arch/exact_double.h"

namespace trine {
namespace {

TEST(RopeTableTest, LogAndExpAreAccurate) {
  quant::Random random(1);
  for (int i = 0; i < 20000; ++i) {
    const double x = std::ldexp(1.0 + static_cast<double>(random.Below(1 << 30)) / (1 << 30),
                                static_cast<int>(random.Below(200)) - 100);
    EXPECT_NEAR(exact_double::Log(x), std::log(x), 1e-15 * std::abs(std::log(x)) + 3e-16) << x;
    const double y = static_cast<double>(random.Below(1 << 30)) / (1 << 30) * 80 - 40;
    EXPECT_NEAR(exact_double::Exp(y), std::exp(y), 2e-15 * std::exp(y)) << y;
  }
  EXPECT_EQ(exact_double::Log(1.0), 0.0);
  EXPECT_EQ(exact_double::Exp(0.0), 1.0);
}

TEST(RopeTableTest, SinCosAreAccurateUpToAMillionRadians) {
  quant::Random random(2);
  for (int i = 0; i < 50000; ++i) {
    const double angle = static_cast<double>(random.Below(1 << 30)) / (1 << 10);  // below 2^20
    double sine = 0, cosine = 0;
    exact_double::SinCos(angle, &sine, &cosine);
    EXPECT_NEAR(sine, std::sin(angle), 1e-15) << angle;
    EXPECT_NEAR(cosine, std::cos(angle), 1e-15) << angle;
  }
}

TEST(RopeTableTest, RowsAreWhatTheFormulaSays) {
  RopeConfig config;
  config.dims = 64;
  config.base = 500000;
  config.position_scale = 0.25;
  std::vector<float> factors(32, 1.0f);
  factors[20] = 8.0f;
  const RopeTable table(config, factors, 64);
  ASSERT_EQ(table.pairs(), 32);
  std::vector<float> row(64);
  for (int64_t position : {0, 1, 100, 8191, 131071}) {
    table.Row(position, row.data());
    for (size_t i = 0; i < 32; ++i) {
      const double angle = static_cast<double>(position) * 0.25 *
                           std::pow(500000.0, -static_cast<double>(2 * i) / 64) / factors[i];
      EXPECT_NEAR(row[i], std::cos(angle), 1e-7) << position << " " << i;
      EXPECT_NEAR(row[32 + i], std::sin(angle), 1e-7) << position << " " << i;
    }
  }
}

// YaRN as in its paper, with the host's own functions.
TEST(RopeTableTest, YarnMixesByHowOftenAPairTurns) {
  constexpr double kPi = 3.14159265358979323846;
  RopeConfig config;
  config.dims = 64;
  config.base = 150000;
  config.position_scale = 1.0 / 32;
  config.magnitude = 1.0 + 0.1 * std::log(32.0);
  config.scaling = RopeScalingType::kYarn;
  config.original_context = 4096;
  const RopeTable table(config, {}, 64);
  const auto pair_of = [&](double turns) {
    return 64 * std::log(4096 / (turns * 2 * kPi)) / (2 * std::log(config.base));
  };
  const double low = std::floor(pair_of(32)), high = std::ceil(pair_of(1));
  ASSERT_GT(low, 0);
  ASSERT_LT(high, 31);
  std::vector<float> row(64);
  for (int64_t position : {1, 77, 4097, 100000}) {
    table.Row(position, row.data());
    for (int i = 0; i < 32; ++i) {
      const double own = std::pow(config.base, -2.0 * i / 64);
      const double share = 1 - std::clamp((i - low) / (high - low), 0.0, 1.0);
      const double angle = static_cast<double>(position) * (own / 32 * (1 - share) + own * share);
      const auto at = static_cast<size_t>(i);
      EXPECT_NEAR(row[at], std::cos(angle) * config.magnitude, 2e-7) << position << " " << i;
      EXPECT_NEAR(row[32 + at], std::sin(angle) * config.magnitude, 2e-7) << position << " " << i;
    }
  }
}

TEST(RopeTableTest, TheBitsArePinned) {
  RopeConfig config;
  config.dims = 128;
  const RopeTable table(config, {}, 64);
  std::vector<float> row(128);
  quant::Hash hash;
  for (int64_t position = 0; position < 40000; position += 37) {
    table.Row(position, row.data());
    for (float x : row) hash.Add(x);
  }
  EXPECT_EQ(hash.value(), 13895380554142599845u);
}

// Rows of the first positions come from the table the second time; later positions never do.
TEST(RopeTableTest, RowsThatAreKeptAreTheSame) {
  RopeConfig config;
  config.dims = 128;
  const RopeTable keeps(config, {}, 64), keeps_none(config, {}, 0);
  std::vector<float> row(128), expected(128);
  for (int round = 0; round < 3; ++round) {
    for (int64_t position = 0; position < 80; ++position) {
      keeps.Row(position, row.data());
      keeps_none.Row(position, expected.data());
      EXPECT_EQ(row, expected) << position;
    }
  }
}

TEST(RopeTableTest, ValuesAreCanonical) {
  RopeConfig config;
  config.dims = 128;
  const RopeTable table(config, {}, 64);
  std::vector<float> row(128);
  for (int64_t position = 0; position < 5000; ++position) {
    table.Row(position, row.data());
    for (float x : row)
      ASSERT_EQ(std::bit_cast<uint32_t>(quant::Canon(x)), std::bit_cast<uint32_t>(x));
  }
}

}  // namespace
}  // namespace trine
