#include "kernels/quant/validate.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "kernels/quant/test_util.h"

namespace trine::quant {
namespace {

TEST(ValidateTest, AcceptsEveryFiniteRow) {
  Random random(3);
  for (Type type : kAllTypes) {
    const std::vector<std::byte> row = RandomWeights(type, 4096, true, &random);
    EXPECT_EQ(FirstNonFinite(type, row.data(), 4096), -1) << Traits(type).name;
  }
}

// Tries each place where a block can hold an infinity or NaN.
TEST(ValidateTest, NamesTheFirstBadBlock) {
  struct BadPlace {
    Type type;
    size_t offset;
  };
  const BadPlace places[] = {
      {Type::kQ4_0, 0},   {Type::kQ4_1, 0},
      {Type::kQ4_1, 2},   {Type::kQ5_0, 0},
      {Type::kQ5_1, 0},   {Type::kQ5_1, 2},
      {Type::kQ8_0, 0},   {Type::kQ2_K, offsetof(BlockQ2_K, d)},
      {Type::kQ4_K, 0},   {Type::kQ2_K, offsetof(BlockQ2_K, dmin)},
      {Type::kQ4_K, 2},   {Type::kQ3_K, offsetof(BlockQ3_K, d)},
      {Type::kQ5_K, 0},   {Type::kQ6_K, offsetof(BlockQ6_K, d)},
      {Type::kQ5_K, 2},   {Type::kTQ1_0, offsetof(BlockTQ1_0, d)},
      {Type::kIQ4_NL, 0}, {Type::kTQ2_0, offsetof(BlockTQ2_0, d)},
      {Type::kIQ4_XS, 0}, {Type::kQ8_KV, 2},
      {Type::kF16, 0},    {Type::kBF16, 0},
      {Type::kF32, 2},
  };
  Random random(4);
  for (const BadPlace& place : places) {
    const TypeTraits traits = Traits(place.type);
    std::vector<std::byte> row = RandomWeights(place.type, 4096, false, &random);
    const uint16_t infinity = place.type == Type::kF16 || IsQuantized(place.type) ? 0x7c00 : 0x7f80;
    const uint16_t bits = place.type == Type::kQ8_KV ? 0xff80 : infinity;
    for (int64_t block : {15, 9}) {
      std::memcpy(row.data() + block * traits.block_bytes + place.offset, &bits, sizeof(bits));
    }
    const int64_t bad = 9 * traits.block_values;
    EXPECT_EQ(FirstNonFinite(place.type, row.data(), 4096), bad) << traits.name;
    EXPECT_FALSE(RowIsFinite(place.type, row.data(), 4096));
    EXPECT_TRUE(RowIsFinite(place.type, row.data(), bad));
  }
}

TEST(ValidateTest, Mxfp4HasOneNaN) {
  BlockMXFP4 block = {254, {}};
  EXPECT_TRUE(RowIsFinite(Type::kMXFP4, &block, 32));
  block.e = 255;
  EXPECT_FALSE(RowIsFinite(Type::kMXFP4, &block, 32));
}

TEST(ValidateTest, CanonRowBringsFloatsIntoRange) {
  float f32[] = {1.0f, 1e-30f, -1e30f};
  CanonRow(Type::kF32, f32, 3);
  EXPECT_EQ(f32[0], 1.0f);
  EXPECT_EQ(f32[1], 0.0f);
  EXPECT_EQ(f32[2], -kHuge);
  uint16_t bf16[] = {0x3f80, 0x0001, 0xff00};
  CanonRow(Type::kBF16, bf16, 3);
  EXPECT_EQ(bf16[0], 0x3f80);
  EXPECT_EQ(bf16[1], 0);
  EXPECT_EQ(Bf16ToF32(bf16[2]), -kHuge);
}

}  // namespace
}  // namespace trine::quant
