#include "kernels/quant/encode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "kernels/quant/encode_test_util.h"
#include "kernels/quant/validate.h"

namespace trine::quant {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(EncodeTest, RefusesWhatIsNoNumber) {
  for (Type type : kWeightTypes) {
    for (float bad : {kInfinity, -kInfinity, std::nanf("")}) {
      std::vector<float> row(512, 0.5f);
      row[300] = bad;
      EXPECT_TRUE(Encoded(type, row).empty()) << Traits(type).name;
    }
  }
}

TEST(EncodeTest, RefusesAnImportanceThatIsNone) {
  const std::vector<float> row(256, 0.5f);
  for (float bad : {-1.0f, kInfinity, std::nanf("")}) {
    std::vector<float> importance(256, 1.0f);
    importance[255] = bad;
    EXPECT_TRUE(Encoded(Type::kQ4_0, row, importance.data()).empty()) << bad;
  }
}

TEST(EncodeTest, RefusesPartsOfBlocksAndOtherTypes) {
  const std::vector<float> row(256, 0.5f);
  std::vector<std::byte> out(4096);
  EXPECT_FALSE(EncodeRow(Type::kQ4_0, row.data(), 33, nullptr, out.data()));
  EXPECT_FALSE(EncodeRow(Type::kQ4_K, row.data(), 128, nullptr, out.data()));
  EXPECT_FALSE(EncodeRow(Type::kI32, row.data(), 32, nullptr, out.data()));
  EXPECT_FALSE(EncodeRow(Type::kQ8_KV, row.data(), 32, nullptr, out.data()));
  EXPECT_TRUE(EncodeRow(Type::kF16, row.data(), 33, nullptr, out.data()));
  for (Type type : kAllTypes) {
    const bool weight = std::count(std::begin(kWeightTypes), std::end(kWeightTypes), type) == 1;
    EXPECT_EQ(CanEncode(type), weight) << Traits(type).name;
  }
}

TEST(EncodeTest, ZerosStayZeros) {
  for (Type type : kWeightTypes) {
    const std::vector<float> row(512, 0.0f);
    EXPECT_EQ(RoundTrip(type, row), row) << Traits(type).name;
  }
}

TEST(EncodeTest, AConstantIsKept) {
  // f16 and bf16 keep the value to a part in 2^8; MXFP4 has no level nearer than an eighth.
  for (Type type : kWeightTypes) {
    for (float constant : {0.7f, -0.7f, 0.011f, -1000.0f}) {
      const std::vector<float> row(256, constant);
      const std::vector<float> out = RoundTrip(type, row);
      const double allowed = type == Type::kMXFP4 ? 0.13 : 0.004;
      for (float value : out) {
        ASSERT_NEAR(value, constant, allowed * std::abs(constant)) << Traits(type).name;
      }
    }
  }
}

template <class Block>
void ExpectNoSignedZero(const std::vector<std::byte>& bytes, uint16_t Block::*second) {
  Block block;
  std::memcpy(&block, bytes.data(), sizeof(block));
  EXPECT_NE(block.d, 0x8000u);
  EXPECT_NE(block.*second, 0x8000u);
}

// -0 would be the same number, but compilers differ in when they produce it.
TEST(EncodeTest, AZeroMinimumHasNoSign) {
  for (float zero : {0.0f, -0.0f}) {
    std::vector<float> row(256, zero);
    for (size_t i = 0; i < row.size(); i += 3) row[i] = 1.0f;
    ExpectNoSignedZero(Encoded(Type::kQ4_1, row), &BlockQ4_1::m);
    ExpectNoSignedZero(Encoded(Type::kQ5_1, row), &BlockQ5_1::m);
    ExpectNoSignedZero(Encoded(Type::kQ2_K, row), &BlockQ2_K::dmin);
    ExpectNoSignedZero(Encoded(Type::kQ4_K, row), &BlockQ4_K::dmin);
    ExpectNoSignedZero(Encoded(Type::kQ5_K, row), &BlockQ5_K::dmin);
  }
}

// Encodes one value among zeros, at every position.
TEST(EncodeTest, ASingleValueStaysWhereItIs) {
  for (Type type : kWeightTypes) {
    for (size_t at = 0; at < 256; ++at) {
      std::vector<float> row(256, 0.0f);
      row[at] = at % 2 == 0 ? 0.25f : -0.25f;
      const std::vector<float> out = RoundTrip(type, row);
      for (size_t i = 0; i < 256; ++i) {
        ASSERT_NEAR(out[i], row[i], 0.002) << Traits(type).name << " value " << at;
      }
    }
  }
}

TEST(EncodeTest, HugeAndTinyRowsAreFinite) {
  constexpr float kSizes[] = {std::numeric_limits<float>::max(),       1e30f, 1e6f, 1e-8f, 1e-30f,
                              std::numeric_limits<float>::denorm_min()};
  for (Type type : kWeightTypes) {
    for (float size : kSizes) {
      Random random(7);
      std::vector<float> row(512);
      for (float& value : row) value = random.Uniform() * size;
      row[3] = size;
      row[4] = -size;
      const std::vector<std::byte> bytes = Encoded(type, row);
      ASSERT_FALSE(bytes.empty());
      EXPECT_TRUE(RowIsFinite(type, bytes.data(), 512)) << Traits(type).name << " " << size;
      const std::vector<float> out = Decoded(type, bytes, 512);
      for (size_t i = 0; i < 512; ++i) {
        // No value grows much beyond its block: MXFP4 may round up from 7 to 8.
        ASSERT_LE(std::abs(out[i]) * 0.87f, size) << Traits(type).name;
      }
    }
  }
}

// A value that is too large for the scale becomes the largest one, with its sign.
TEST(EncodeTest, LargeValuesSaturate) {
  std::vector<float> row(256, 1e9f);
  row[1] = -1e9f;
  const std::map<Type, float> largest = {{Type::kF16, 65504.0f},
                                         {Type::kQ8_0, 65504.0f * 127},
                                         {Type::kQ4_0, 65504.0f * 7},
                                         {Type::kTQ2_0, 65504.0f}};
  for (const auto& [type, value] : largest) {
    const std::vector<float> out = RoundTrip(type, row);
    EXPECT_GE(out[0], value) << Traits(type).name;
    EXPECT_LE(out[1], -value) << Traits(type).name;
  }
  EXPECT_EQ(RoundTrip(Type::kBF16, {std::numeric_limits<float>::max()})[0], 0x1.fep+127f);
}

TEST(EncodeTest, TernaryRowsAreKeptWhole) {
  Random random(3);
  std::vector<float> row(1024);
  for (size_t i = 0; i < row.size(); ++i) {
    const float magnitude = i < 256 ? 0.03125f : 0.5f;
    row[i] = magnitude * static_cast<float>(random.Below(3) - 1);
  }
  EXPECT_TRUE(IsTernary(row.data(), 1024));
  EXPECT_EQ(RoundTrip(Type::kTQ1_0, row), row);
  EXPECT_EQ(RoundTrip(Type::kTQ2_0, row), row);

  row[17] = 0.25f;
  EXPECT_FALSE(IsTernary(row.data(), 1024));
  const std::vector<float> third(256, 1.0f / 3.0f);  // not an f16
  EXPECT_FALSE(IsTernary(third.data(), 256));
  const std::vector<float> zeros(256, 0.0f);
  EXPECT_TRUE(IsTernary(zeros.data(), 256));
}

// The best d is a mean of the largest magnitudes: here of the two ones, not of all values.
TEST(EncodeTest, TernaryFitIsTheBest) {
  std::vector<float> row(256, 0.01f);
  row[0] = 1.0f;
  row[100] = -1.0f;
  const std::vector<float> out = RoundTrip(Type::kTQ2_0, row);
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[100], -1.0f);
  EXPECT_EQ(out[1], 0.0f);
}

// Blocks with full ranges round-trip bit for bit, where one f16 scales them.
TEST(EncodeTest, WhatWasDecodedIsEncodedAgainAsItWas) {
  for (Type type : {Type::kF32, Type::kF16, Type::kBF16, Type::kQ8_0, Type::kQ4_0, Type::kIQ4_NL,
                    Type::kTQ1_0, Type::kTQ2_0, Type::kMXFP4}) {
    const std::vector<float> once = RoundTrip(type, GaussianRow(8192, 5));
    EXPECT_EQ(RoundTrip(type, once), once) << Traits(type).name;
  }
}

// If scales are stored in two steps, several blocks mean nearly the same values. The second
// encoding may choose another block, and must add little error.
TEST(EncodeTest, EncodingTwiceAddsLittle) {
  for (Type type : kWeightTypes) {
    const std::vector<float> row = GaussianRow(8192, 6);
    const std::vector<float> once = RoundTrip(type, row);
    const std::vector<float> twice = RoundTrip(type, once);
    const double first = SquaredError(row, once), second = SquaredError(once, twice);
    EXPECT_LE(second, 0.02 * first) << Traits(type).name;
  }
}

// The bits are the same for every compiler, optimisation and architecture.
TEST(EncodeTest, RowsKeepTheirBits) {
  const std::map<Type, uint64_t> expected = {
      {Type::kF32, 0x7a03ca712709fcf1},    {Type::kF16, 0xc19c2b2e13b329},
      {Type::kBF16, 0xb4efc381aca5cc8a},   {Type::kQ4_0, 0xbda43195dd0a0266},
      {Type::kQ4_1, 0xd072e475a2e90250},   {Type::kQ5_0, 0x3673685fde76224e},
      {Type::kQ5_1, 0x9649495a5f00a558},   {Type::kQ8_0, 0xf9dd6dd41e00c5f4},
      {Type::kQ2_K, 0x2cba685f2543eee7},   {Type::kQ3_K, 0x726269243fe6960},
      {Type::kQ4_K, 0x6c29328ebae1e87e},   {Type::kQ5_K, 0xff12c00da2ef58e9},
      {Type::kQ6_K, 0xc2d0614452baeb2d},   {Type::kIQ4_NL, 0xb36f3cac7dc8bbc8},
      {Type::kIQ4_XS, 0x8ba05096b1cc6087}, {Type::kTQ1_0, 0x297d8cb3ca4d20ad},
      {Type::kTQ2_0, 0xd2daeb760cf43cb1},  {Type::kMXFP4, 0xdb5bae6638639f00},
  };
  for (Type type : kWeightTypes) {
    Random random(static_cast<uint64_t>(type));
    Hash hash;
    for (int i = 0; i < 44; ++i) {
      std::vector<float> row(1024), importance(1024);
      for (float& value : row) {
        value = i >= 40      ? static_cast<float>(random.Below(2))
                : i % 4 == 0 ? random.Wide(-126, 126)
                : i % 4 == 1 ? random.Wide(-20, 3)
                             : 0.1f * random.Uniform();
      }
      for (float& weight : importance) weight = Abs(random.Wide(-30, 30));
      const auto bytes = Encoded(type, row, i % 2 == 1 ? importance.data() : nullptr);
      hash.Add(bytes.data(), bytes.size());
    }
    EXPECT_TRUE(expected.count(type) && expected.at(type) == hash.value())
        << "{Type::k" << Traits(type).name << std::hex << ", 0x" << hash.value() << "},";
  }
}

}  // namespace
}  // namespace trine::quant
