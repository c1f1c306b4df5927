// Tests how good the fits are: against bounds, against plain rounding, and with importance.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "kernels/quant/encode_test_util.h"

namespace trine::quant {
namespace {

constexpr int64_t kValues = 256 * 64;

// Bounds of the relative root mean square error of normally distributed values: two percent above
// the encoders' own.
TEST(EncodeQualityTest, ErrorOfNormalValues) {
  const std::map<Type, double> bounds = {
      {Type::kF16, 0.00022},  {Type::kBF16, 0.0017},   {Type::kQ8_0, 0.0053},
      {Type::kQ6_K, 0.0168},  {Type::kQ5_K, 0.0347},   {Type::kQ5_1, 0.0341},
      {Type::kQ5_0, 0.0401},  {Type::kQ4_K, 0.0705},   {Type::kQ4_1, 0.0703},
      {Type::kQ4_0, 0.0812},  {Type::kIQ4_NL, 0.0742}, {Type::kIQ4_XS, 0.0745},
      {Type::kMXFP4, 0.1132}, {Type::kQ3_K, 0.1477},   {Type::kQ2_K, 0.2742},
      {Type::kTQ1_0, 0.449},  {Type::kTQ2_0, 0.449},
  };
  const std::vector<float> row = GaussianRow(kValues, 11);
  const double power = SquaredError(row, std::vector<float>(row.size()));
  for (const auto& [type, bound] : bounds) {
    const double error = std::sqrt(SquaredError(row, RoundTrip(type, row)) / power);
    EXPECT_LE(error, bound) << Traits(type).name;
    EXPECT_GE(error, 0.9 * bound) << Traits(type).name << ": the bound could be closer";
  }
}

// Plain rounding: gives the extreme value of a part the extreme level and rounds its scale to what
// the format stores.
struct Plain {
  int part;                                                    // values that share a scale
  std::function<std::vector<float>(const float*, int)> round;  // returns the part, decoded
};

float HalfOf(float x) { return F16ToF32(F32ToF16Saturated(x)); }

std::vector<float> PlainScaled(const float* x, int n, int low, int high, bool f16_scale) {
  float extreme = 0.0f;
  for (int i = 0; i < n; ++i) extreme = std::abs(x[i]) > std::abs(extreme) ? x[i] : extreme;
  const float exact = low < -high ? extreme / static_cast<float>(low)
                                  : std::abs(extreme) / static_cast<float>(high);
  const float d = f16_scale ? HalfOf(exact) : exact;
  std::vector<float> out(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) {
    const float q = exact == 0.0f ? 0.0f : std::nearbyint(x[i] / exact);
    out[static_cast<size_t>(i)] =
        d * std::clamp(q, static_cast<float>(low), static_cast<float>(high));
  }
  return out;
}

std::vector<float> PlainAffine(const float* x, int n, int high, bool below_zero) {
  float least = *std::min_element(x, x + n);
  if (below_zero) least = std::min(least, 0.0f);
  const float most = *std::max_element(x, x + n);
  const float exact = (most - least) / static_cast<float>(high);
  std::vector<float> out(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) {
    const float q = exact == 0.0f ? 0.0f : std::nearbyint((x[i] - least) / exact);
    out[static_cast<size_t>(i)] =
        HalfOf(exact) * std::clamp(q, 0.0f, static_cast<float>(high)) + HalfOf(least);
  }
  return out;
}

const std::map<Type, Plain>& PlainRoundings() {
  const auto scaled = [](int part, int low, int high) {
    return Plain{part, [=](const float* x, int n) { return PlainScaled(x, n, low, high, true); }};
  };
  const auto affine = [](int part, int high, bool below_zero) {
    return Plain{part, [=](const float* x, int n) { return PlainAffine(x, n, high, below_zero); }};
  };
  // Here plain K types get f16 scales for every part, which is better than the few bits that they
  // store.
  static const std::map<Type, Plain> plain = {
      {Type::kQ8_0, scaled(32, -127, 127)}, {Type::kQ4_0, scaled(32, -8, 7)},
      {Type::kQ5_0, scaled(32, -16, 15)},   {Type::kQ4_1, affine(32, 15, false)},
      {Type::kQ5_1, affine(32, 31, false)}, {Type::kTQ2_0, scaled(256, -1, 1)},
      {Type::kQ3_K, scaled(16, -4, 3)},     {Type::kQ6_K, scaled(16, -32, 31)},
      {Type::kQ2_K, affine(16, 3, true)},   {Type::kQ4_K, affine(32, 15, true)},
      {Type::kQ5_K, affine(32, 31, true)},
  };
  return plain;
}

// Rows of several kinds: normal, with outliers, one-sided, sparse.
std::vector<std::vector<float>> Rows() {
  std::vector<std::vector<float>> rows = {GaussianRow(kValues, 21)};
  std::vector<float> outliers = GaussianRow(kValues, 22);
  for (size_t i = 0; i < outliers.size(); i += 97) outliers[i] *= 8.0f;
  rows.push_back(outliers);
  std::vector<float> one_sided = GaussianRow(kValues, 23);
  for (float& value : one_sided) value = std::abs(value);
  rows.push_back(one_sided);
  std::vector<float> sparse = GaussianRow(kValues, 24);
  for (size_t i = 0; i < sparse.size(); ++i) sparse[i] = i % 5 == 0 ? sparse[i] : 0.0f;
  rows.push_back(sparse);
  return rows;
}

TEST(EncodeQualityTest, NeverWorseThanPlainRounding) {
  for (const std::vector<float>& row : Rows()) {
    for (const auto& [type, plain] : PlainRoundings()) {
      std::vector<float> rounded;
      for (size_t at = 0; at < row.size(); at += static_cast<size_t>(plain.part)) {
        const std::vector<float> part = plain.round(row.data() + at, plain.part);
        rounded.insert(rounded.end(), part.begin(), part.end());
      }
      EXPECT_LE(SquaredError(row, RoundTrip(type, row)), SquaredError(row, rounded))
          << Traits(type).name;
    }
  }
}

// Returns the weights of errors that the encoders use without importance.
std::vector<float> OwnWeights(const std::vector<float>& x) {
  float mean = 0.0f;
  for (float value : x) mean += std::abs(value) / static_cast<float>(x.size());
  std::vector<float> weights;
  for (float value : x) weights.push_back(std::abs(value) + mean);
  return weights;
}

// Compares block by block, for types whose plain rounding the encoder could have chosen.
TEST(EncodeQualityTest, NoBlockIsWorseThanPlainRounding) {
  for (const std::vector<float>& row : Rows()) {
    for (Type type : {Type::kQ8_0, Type::kQ4_0, Type::kQ5_0, Type::kQ4_1, Type::kQ5_1}) {
      const std::vector<float> out = RoundTrip(type, row);
      for (auto at = row.begin(); at != row.end(); at += 32) {
        const std::vector<float> x(at, at + 32);
        const auto place = out.begin() + (at - row.begin());
        const std::vector<float> ours(place, place + 32), weights = OwnWeights(x);
        const std::vector<float> plain = PlainRoundings().at(type).round(x.data(), 32);
        EXPECT_LE(SquaredError(x, ours, weights), SquaredError(x, plain, weights) * 1.0001)
            << Traits(type).name << " at " << at - row.begin();
      }
    }
  }
}

// Importance moves errors to where they matter less.
TEST(EncodeQualityTest, ImportanceLowersTheErrorThatCounts) {
  const std::vector<float> row = GaussianRow(kValues, 31);
  Random random(32);
  std::vector<float> importance(row.size());
  for (float& weight : importance) weight = Abs(random.Wide(-6, 3));
  for (Type type : kWeightTypes) {
    if (!IsQuantized(type)) continue;
    const double without = SquaredError(row, RoundTrip(type, row), importance);
    const double with = SquaredError(row, RoundTrip(type, row, importance.data()), importance);
    // Eight bits, and powers of two, leave little to choose.
    const double gain = type == Type::kQ8_0 || type == Type::kMXFP4 ? 1.0 : 0.98;
    EXPECT_LE(with, gain * without) << Traits(type).name;
  }
}

constexpr Type kTypesWithMinimums[] = {Type::kQ4_1, Type::kQ5_1, Type::kQ2_K, Type::kQ4_K,
                                       Type::kQ5_K};

// A column that has nearly all the importance is stored well, and the others get hardly worse.
TEST(EncodeQualityTest, AColumnThatDominatesItsBlock) {
  const std::vector<float> row = GaussianRow(kValues, 35);
  for (size_t block : {32u, 256u}) {
    for (float ratio : {1e4f, 1e6f, 1e8f}) {
      std::vector<float> importance(row.size(), 1.0f), dominating(row.size(), 0.0f);
      for (size_t i = 0; i < row.size() / block; ++i) {
        const size_t at = i * block + i * 7 % block;
        importance[at] = ratio;
        dominating[at] = 1.0f;
      }
      for (Type type : kTypesWithMinimums) {
        const std::vector<float> without = RoundTrip(type, row);
        const std::vector<float> with = RoundTrip(type, row, importance.data());
        EXPECT_LE(SquaredError(row, with, dominating),
                  0.05 * SquaredError(row, without, dominating))
            << Traits(type).name << " " << ratio << " in " << block;
        EXPECT_LE(SquaredError(row, with), 1.35 * SquaredError(row, without))
            << Traits(type).name << " " << ratio << " in " << block;
      }
    }
  }
}

// Values far from zero and close to each other: errors within half a step of levels from zero up.
TEST(EncodeQualityTest, NearlyConstantRows) {
  for (Type type : kTypesWithMinimums) {
    const int levels = type == Type::kQ2_K                          ? 3
                       : type == Type::kQ4_1 || type == Type::kQ4_K ? 15
                                                                    : 31;
    for (int seed = 0; seed < 200; ++seed) {
      Random random(static_cast<uint64_t>(seed));
      const float spread = std::ldexp(0.3f, -seed % 24);
      std::vector<float> row(1024);
      for (float& value : row) {
        value = (seed % 3 == 0 ? -0.7f : 0.7f) + spread * random.Uniform();
      }
      const double power = SquaredError(row, std::vector<float>(row.size()));
      EXPECT_LE(std::sqrt(SquaredError(row, RoundTrip(type, row)) / power), 0.5 / levels)
          << Traits(type).name << " " << seed;
    }
  }
}

// Only the proportions of the importances matter. If all are 0, they are taken as equal.
TEST(EncodeQualityTest, ImportanceIsRelative) {
  const std::vector<float> row = GaussianRow(1024, 33);
  Random random(34);
  std::vector<float> importance(row.size()), scaled(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    importance[i] = Abs(random.Wide(-6, 3));
    scaled[i] = importance[i] * 0x1p+90f;
  }
  const std::vector<float> zeros(row.size(), 0.0f), ones(row.size(), 1.0f);
  for (Type type : kWeightTypes) {
    EXPECT_EQ(Encoded(type, row, importance.data()), Encoded(type, row, scaled.data()));
    EXPECT_EQ(Encoded(type, row, zeros.data()), Encoded(type, row));
    EXPECT_EQ(Encoded(type, row, ones.data()), Encoded(type, row));
  }
}

}  // namespace
}  // namespace trine::quant
