#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "kernels/quant/activation.h"
#include "kernels/quant/dequantize.h"
#include "kernels/quant/test_util.h"

namespace trine::quant {
namespace {

ActivationBlock RandomActivation(Fill fill, Random* random) {
  float x[kGroupValues];
  for (float& value : x) value = FillValue(fill, random);
  ActivationBlock block;
  QuantizeActivation(x, &block);
  return block;
}

TEST(ActivationTest, TheLargestValueBecomes127) {
  float x[kGroupValues] = {0.5f, -2.0f, 1.0f};
  ActivationBlock block;
  QuantizeActivation(x, &block);
  EXPECT_EQ(block.d, 2.0f * FromBits(0x3c010204));
  EXPECT_EQ(block.q[0], 32);  // 31.75
  EXPECT_EQ(block.q[1], -127);
  EXPECT_EQ(block.sum[0], 32 - 127 + block.q[2]);
  EXPECT_EQ(block.sum[1], 0);
}

TEST(ActivationTest, ErrorIsAtMostHalfAStep) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    float x[kGroupValues];
    for (float& value : x) value = FillValue(Fill::kWide, &random);
    ActivationBlock block;
    QuantizeActivation(x, &block);
    for (int j = 0; j < kGroupValues; ++j) {
      const double error = std::abs(static_cast<double>(block.d) * block.q[j] - x[j]);
      EXPECT_LE(error, 0.5001 * block.d);
    }
  }
}

TEST(ActivationTest, KvBlocksBelowTheFloorAreZero) {
  float x[kGroupValues] = {0x1.8p-31f};
  BlockQ8_KV kv;
  QuantizeKv(x, &kv);
  EXPECT_EQ(kv.d, 0.0f);
  EXPECT_EQ(kv.q[0], 0);
  x[5] = -kKvTiny;
  QuantizeKv(x, &kv);
  EXPECT_EQ(kv.q[5], -127);
}

// The term is the dot product of the decoded weights, up to the rounding of three operations.
TEST(DotTest, TermsEqualTheDecodedDotProduct) {
  for (Type type : kWeightTypes) {
    if (!IsQuantized(type)) continue;
    Random random(static_cast<uint64_t>(type) + 1000);
    const std::vector<std::byte> row = RandomWeights(type, 1 << 14, false, &random);
    for (int64_t b = 0; b < (1 << 14) / kGroupValues; ++b) {
      Group group;
      LoadGroup(type, row.data(), b, &group);
      const ActivationBlock activation = RandomActivation(Fill::kOutlier, &random);
      float weights[kGroupValues];
      DequantizeGroup(type, row.data(), b, kGroupValues, weights);
      double expected = 0.0, magnitude = 0.0;
      for (int i = 0; i < kGroupValues; ++i) {
        const double term = static_cast<double>(weights[i]) * activation.d * activation.q[i];
        expected += term;
        magnitude += std::abs(term) + std::abs(static_cast<double>(group.dmin) * group.min[i / 16] *
                                               activation.d * activation.q[i]);
      }
      EXPECT_NEAR(BlockTerm(group, activation), expected, 4e-7 * magnitude) << Traits(type).name;
    }
  }
}

// Returns 32 times the product of the largest scale, weight and activation magnitudes.
constexpr int32_t BoundOf(int32_t scale, int32_t q) { return 32 * scale * q * 127; }

// Returns the largest abs(I) of the type; 0 for types that are not quantised.
int32_t LargestIntegerDot(Type type) {
  switch (type) {
    case Type::kQ4_0:
      return BoundOf(1, 8);
    case Type::kQ4_1:
      return BoundOf(1, 15);
    case Type::kQ5_0:
      return BoundOf(1, 16);
    case Type::kQ5_1:
      return BoundOf(1, 31);
    case Type::kQ8_0:
    case Type::kQ8_KV:
      return BoundOf(1, 128);
    case Type::kQ2_K:
      return BoundOf(15, 3);
    case Type::kQ3_K:
      return BoundOf(32, 4);
    case Type::kQ4_K:
      return BoundOf(63, 15);
    case Type::kQ5_K:
      return BoundOf(63, 31);
    case Type::kQ6_K:
      return BoundOf(128, 32);
    case Type::kIQ4_NL:
      return BoundOf(1, 127);
    case Type::kIQ4_XS:
      return BoundOf(32, 127);
    case Type::kTQ1_0:
      return BoundOf(1, 1);
    case Type::kTQ2_0:
      return BoundOf(1, 2);
    case Type::kMXFP4:
      return BoundOf(1, 12);
    default:
      return 0;
  }
}

TEST(DotTest, IntegersStayExactInFloat) {
  for (Type type : kWeightTypes) {
    const int32_t bound = LargestIntegerDot(type);
    EXPECT_EQ(bound > 0, IsQuantized(type));
    EXPECT_LT(bound, 1 << 24) << Traits(type).name;
    if (bound == 0) continue;
    Random random(7);
    const std::vector<std::byte> row = RandomWeights(type, 1 << 14, false, &random);
    for (int64_t b = 0; b < (1 << 14) / kGroupValues; ++b) {
      Group group;
      LoadGroup(type, row.data(), b, &group);
      ActivationBlock activation = {1.0f, {0, 0}, {}};
      for (int i = 0; i < kGroupValues; ++i) {
        activation.q[i] = group.q[i] * group.scale[i / 16] < 0 ? -127 : 127;
        activation.sum[i / 16] += activation.q[i];
      }
      const IntegerDot dot = DotIntegers(group, activation);
      EXPECT_LE(dot.i, bound) << Traits(type).name;
      EXPECT_LT(std::abs(dot.m), 1 << 24) << Traits(type).name;
    }
  }
}

TEST(DotTest, Q6KReachesItsBound) {
  BlockQ6_K block = {};  // every value is -32
  std::memset(block.scales, 0x80, sizeof(block.scales));
  Group group;
  LoadGroup(Type::kQ6_K, &block, 0, &group);
  ActivationBlock activation = {1.0f, {0, 0}, {}};
  std::memset(activation.q, 127, sizeof(activation.q));
  EXPECT_EQ(DotIntegers(group, activation).i, LargestIntegerDot(Type::kQ6_K));
}

TEST(DotTest, RowsAreSummedInEightClasses) {
  RowSums sums;
  for (int b = 0; b < 16; ++b) sums.Add(b, b == 3 ? 0x1p+24f : 1.0f);
  // Class 3 rounds its second term away, (s3 + s7) keeps its two, and the rest adds 12.
  EXPECT_EQ(sums.class_sum[3], 0x1p+24f);
  EXPECT_EQ(sums.Total(), 0x1p+24f + 14.0f);
}

TEST(DotTest, TermsKeepTheirBits) {
  const std::map<Type, uint64_t> expected = {
      {Type::kQ4_0, 0x78fb01ab96841572},   {Type::kQ4_1, 0xc7e202e4c477c048},
      {Type::kQ5_0, 0xcbd3d685f316942c},   {Type::kQ5_1, 0x89a6f7a09ad7e205},
      {Type::kQ8_0, 0x9bca3b210d167334},   {Type::kQ2_K, 0xb853ef2c0914f6d4},
      {Type::kQ3_K, 0x479d24cbf6619439},   {Type::kQ4_K, 0x9f0599284d743b9e},
      {Type::kQ5_K, 0xa086176c76ca055f},   {Type::kQ6_K, 0x335c3366cd2617ac},
      {Type::kIQ4_NL, 0xf53c15f79145ca17}, {Type::kIQ4_XS, 0x653ca8a23a5106cb},
      {Type::kTQ1_0, 0xa888a2ea50e7ca7b},  {Type::kTQ2_0, 0x213b45d8bca5d0ae},
      {Type::kMXFP4, 0x6e0f86a4aa8e4381},
  };
  const auto hash_of = [](Type type) {
    Random random(static_cast<uint64_t>(type) + 2000);
    Hash hash;
    for (Fill fill : kAllFills) {
      const std::vector<std::byte> row =
          RandomWeights(type, 4096, fill == Fill::kWide || fill == Fill::kTiny, &random);
      RowSums sums;
      for (int64_t b = 0; b < 4096 / kGroupValues; ++b) {
        Group group;
        LoadGroup(type, row.data(), b, &group);
        const float term = BlockTerm(group, RandomActivation(fill, &random));
        hash.Add(term);
        sums.Add(b, term);
      }
      hash.Add(sums.Total());
    }
    return hash.value();
  };
  for (Type type : kWeightTypes) {
    if (!IsQuantized(type)) continue;
    const uint64_t hash = hash_of(type);
    EXPECT_TRUE(expected.count(type) && expected.at(type) == hash)
        << Traits(type).name << std::hex << " gave 0x" << hash;
    const ScopedFlushToZero flush;
    EXPECT_EQ(hash_of(type), hash) << Traits(type).name;
  }
}

}  // namespace
}  // namespace trine::quant
