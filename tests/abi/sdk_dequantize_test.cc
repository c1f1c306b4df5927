// Compares the SDK's decoder, which plugins are compiled with, with the decoder of the kernels.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/quant/dequantize.h"
#include "kernels/quant/test_util.h"
#include "trine/sdk/dequantize.h"
#include "trine/sdk/op_rules.h"

namespace trine::sdk {
namespace {

using quant::Type;

constexpr float kUntouched = 12345.0f;

std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (float v : values) bits.push_back(quant::Bits(v));
  return bits;
}

// Expects both decoders to give the same bits for the first `values` values of a row.
void ExpectSameBits(Type type, const std::byte* row, int64_t values) {
  std::vector<float> expected(static_cast<size_t>(values)), got(expected.size(), kUntouched);
  quant::DequantizeRow(type, row, values, expected.data());
  ASSERT_TRUE(DequantizeRow(static_cast<uint32_t>(type), row, values, got.data()));
  EXPECT_EQ(BitsOf(got), BitsOf(expected)) << quant::Traits(type).name;
}

TEST(SdkDequantizeTest, EqualsTheKernelsBitForBit) {
  for (Type type : quant::kAllTypes) {
    if (type == Type::kI32) continue;
    quant::Random random(static_cast<uint64_t>(type));
    for (bool any_scale : {false, true}) {
      const std::vector<std::byte> row = quant::RandomWeights(type, 65536, any_scale, &random);
      ExpectSameBits(type, row.data(), 65536);
    }
  }
}

TEST(SdkDequantizeTest, DecodesEveryHalf) {
  std::vector<uint16_t> row;
  for (uint32_t half = 0; half < 0x10000; ++half) row.push_back(static_cast<uint16_t>(half));
  const auto* bytes = reinterpret_cast<const std::byte*>(row.data());
  ExpectSameBits(Type::kF16, bytes, 0x10000);
  ExpectSameBits(Type::kBF16, bytes, 0x10000);
}

TEST(SdkDequantizeTest, DenormalsDoNotDependOnTheProcessorsMode) {
  quant::Random random(1);
  std::vector<std::byte> row = quant::RandomWeights(Type::kQ4_K, 256, true, &random);
  row[0] = std::byte{1}, row[1] = std::byte{0};  // the least denormal scale
  row[2] = std::byte{3}, row[3] = std::byte{0};
  const quant::ScopedFlushToZero flush;
  ExpectSameBits(Type::kQ4_K, row.data(), 256);
}

TEST(SdkDequantizeTest, ARowMayBeginAtAnyAddressAndEndAnywhere) {
  quant::Random random(2);
  for (Type type : {Type::kF32, Type::kF16, Type::kBF16, Type::kQ8_0, Type::kQ6_K}) {
    const int64_t values = quant::Traits(type).block_values == 1 ? 37 : 512;
    const std::vector<std::byte> row = quant::RandomWeights(type, values, false, &random);
    std::vector<float> expected(static_cast<size_t>(values)), got(expected.size() + 1, kUntouched);
    quant::DequantizeRow(type, row.data(), values, expected.data());
    std::vector<std::byte> shifted(row.size() + 1);
    std::copy(row.begin(), row.end(), shifted.begin() + 1);
    ASSERT_TRUE(DequantizeRow(static_cast<uint32_t>(type), shifted.data() + 1, values, got.data()));
    EXPECT_EQ(got.back(), kUntouched) << "wrote beyond the row";
    got.pop_back();
    EXPECT_EQ(BitsOf(got), BitsOf(expected)) << quant::Traits(type).name;
  }
}

TEST(SdkDequantizeTest, KnowsEveryTypeOfWeightsAndCaches) {
  for (uint32_t dtype = 0; dtype < 256; ++dtype) {
    EXPECT_EQ(DequantizeRow(dtype, nullptr, 0, nullptr), IsWeight(dtype) || IsKv(dtype)) << dtype;
  }
}

TEST(SdkDequantizeTest, RefusesPartsOfBlocksAndWritesNothing) {
  const std::vector<std::byte> row(1024);
  std::vector<float> out(512, kUntouched);
  EXPECT_FALSE(DequantizeRow(TRINE_DTYPE_Q4_0, row.data(), 33, out.data()));
  EXPECT_FALSE(DequantizeRow(TRINE_DTYPE_Q4_K, row.data(), 32, out.data()));
  EXPECT_FALSE(DequantizeRow(TRINE_DTYPE_F32, row.data(), -1, out.data()));
  EXPECT_FALSE(DequantizeRow(TRINE_DTYPE_I32, row.data(), 4, out.data()));
  EXPECT_FALSE(DequantizeRow(99, row.data(), 32, out.data()));
  EXPECT_EQ(out, std::vector<float>(512, kUntouched));
}

}  // namespace
}  // namespace trine::sdk
