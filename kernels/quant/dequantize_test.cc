#include "kernels/quant/dequantize.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "kernels/quant/test_util.h"

namespace trine::quant {
namespace {

constexpr uint16_t kHalfOne = 0x3c00;
constexpr uint16_t kHalfTwo = 0x4000;

template <typename Block>
std::vector<float> Decode(Type type, const Block& block) {
  std::vector<float> out(static_cast<size_t>(Traits(type).block_values));
  DequantizeRow(type, &block, Traits(type).block_values, out.data());
  return out;
}

TEST(DequantizeTest, NibblesAreLowHalvesThenHighHalves) {
  BlockQ4_0 block = {kHalfTwo, {0x1f}};
  const std::vector<float> out = Decode(Type::kQ4_0, block);
  EXPECT_EQ(out[0], 2.0f * 7);
  EXPECT_EQ(out[16], 2.0f * -7);
  EXPECT_EQ(out[1], 2.0f * -8);
}

TEST(DequantizeTest, Q4_1AndQ5_1AddTheirMinimum) {
  BlockQ4_1 four = {kHalfTwo, kHalfOne, {0x3f}};
  EXPECT_EQ(Decode(Type::kQ4_1, four)[0], 31.0f);
  EXPECT_EQ(Decode(Type::kQ4_1, four)[16], 7.0f);
  BlockQ5_1 five = {kHalfTwo, kHalfOne, {0x01, 0, 0x01}, {0x3f}};
  EXPECT_EQ(Decode(Type::kQ5_1, five)[0], 63.0f);
  EXPECT_EQ(Decode(Type::kQ5_1, five)[16], 39.0f);
}

TEST(DequantizeTest, KTypesSubtractTheirMinimum) {
  BlockQ4_K block = {kHalfTwo, kHalfOne, {}, {}};
  block.scales[0] = 3;  // scale 0
  block.scales[4] = 5;  // minimum 0
  block.scales[3] = 0xc0;
  block.scales[7] = 0x40;
  block.scales[11] = 0x21;  // scale 7 is 1 + 48, minimum 7 is 2 + 16
  block.q[0] = 0x07;
  block.q[96] = 0x20;
  const std::vector<float> out = Decode(Type::kQ4_K, block);
  EXPECT_EQ(out[0], 2.0f * 3 * 7 - 5);
  EXPECT_EQ(out[224], 2.0f * 49 * 2 - 18);
}

TEST(DequantizeTest, Mxfp4ScalesAreClamped) {
  BlockMXFP4 block = {128, {0x97}};
  EXPECT_EQ(Decode(Type::kMXFP4, block)[0], 12.0f);
  EXPECT_EQ(Decode(Type::kMXFP4, block)[16], -1.0f);
  block.e = 0;
  EXPECT_EQ(Decode(Type::kMXFP4, block)[16], -0x1p-46f);
  block.e = 254;
  EXPECT_EQ(Decode(Type::kMXFP4, block)[16], -0x1p+50f);
}

TEST(DequantizeTest, TernaryBytesHoldFiveDigits) {
  // Digits 2 1 0 1 2 in base 3 are 194; the byte is 194 * 256 / 243, rounded up.
  BlockTQ1_0 block = {{(194 * 256 + 242) / 243}, {}, kHalfOne};
  const std::vector<float> out = Decode(Type::kTQ1_0, block);
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[32], 0.0f);
  EXPECT_EQ(out[64], -1.0f);
  EXPECT_EQ(out[96], 0.0f);
  EXPECT_EQ(out[128], 1.0f);
}

TEST(DequantizeTest, AFloatRowMayEndAnywhere) {
  const std::vector<uint16_t> row(37, kHalfTwo);
  std::vector<float> out(37);
  DequantizeRow(Type::kF16, row.data(), 37, out.data());
  EXPECT_EQ(out[36], 2.0f);
}

// The hashes were taken when the values equalled those of the formats' first implementation bit for
// bit.
TEST(DequantizeTest, RandomRowsKeepTheirBits) {
  const std::map<Type, uint64_t> expected = {
      {Type::kF32, 0x2dce90b169563c0c},    {Type::kF16, 0xa816ef3cfbb50527},
      {Type::kBF16, 0x82c0ea893f206dc2},   {Type::kQ4_0, 0xdfdb45bdc1890135},
      {Type::kQ4_1, 0x295f02ad5626ee55},   {Type::kQ5_0, 0x7daed1864a79452e},
      {Type::kQ5_1, 0xdc9a620f75c68f1e},   {Type::kQ8_0, 0x4a97bcada9d8cb82},
      {Type::kQ2_K, 0xb3798907e915cd6a},   {Type::kQ3_K, 0xd623f9a35ba0ed00},
      {Type::kQ4_K, 0xf8fffe2dab0fba6a},   {Type::kQ5_K, 0x48daff8cc377c0a3},
      {Type::kQ6_K, 0xeb744ead908b3224},   {Type::kIQ4_NL, 0x388e1b8a8ed0970e},
      {Type::kIQ4_XS, 0xd0c1d41d3360d4a5}, {Type::kTQ1_0, 0x39da2d3e1c49d2c9},
      {Type::kTQ2_0, 0xf362070f68723ddc},  {Type::kMXFP4, 0x1f83a8071ca114d0},
  };
  for (Type type : kWeightTypes) {
    Random random(static_cast<uint64_t>(type));
    Hash hash;
    std::vector<float> out(8192);
    for (bool any_scale : {false, true}) {
      const std::vector<std::byte> row = RandomWeights(type, 8192, any_scale, &random);
      DequantizeRow(type, row.data(), 8192, out.data());
      hash.Add(out.data(), out.size() * sizeof(float));
    }
    EXPECT_TRUE(expected.count(type) && expected.at(type) == hash.value())
        << Traits(type).name << std::hex << " gave 0x" << hash.value();
  }
}

}  // namespace
}  // namespace trine::quant
