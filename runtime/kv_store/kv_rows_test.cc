#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/quant/dequantize.h"
#include "kernels/quant/float_bits.h"
#include "kernels/quant/scalar.h"
#include "runtime/kv_store/kv_codec.h"

namespace trine {
namespace {

using quant::Type;

TEST(KvRowsTest, EveryHalfIsLoadedAsItIs) {
  for (const Type type : {Type::kF16, Type::kBF16}) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const auto half = static_cast<uint16_t>(bits);
      float expected = 0, got = 0;
      quant::DequantizeRow(type, &half, 1, &expected);
      const bool finite = LoadKvValues(type, reinterpret_cast<const std::byte*>(&half), 1, &got);
      ASSERT_EQ(finite, std::isfinite(expected)) << bits;
      if (finite) {
        ASSERT_EQ(quant::Bits(got), quant::Bits(expected)) << bits;
      }
    }
  }
}

TEST(KvRowsTest, WhatIsNotFiniteIsSeenAnywhere) {
  for (const Type type : {Type::kF16, Type::kBF16, Type::kF32}) {
    for (size_t at = 0; at < 70; ++at) {
      float out[70];
      std::vector<uint32_t> words(70);
      std::vector<uint16_t> halves(70);
      const auto load = [&] {
        return LoadKvValues(type,
                            type == Type::kF32 ? reinterpret_cast<const std::byte*>(words.data())
                                               : reinterpret_cast<const std::byte*>(halves.data()),
                            70, out);
      };
      EXPECT_TRUE(load());
      words[at] = 0xff800000u;
      halves[at] = type == Type::kF16 ? 0xfc00 : 0xff80;
      EXPECT_FALSE(load());
      words[at] += 1;
      halves[at] += 1;
      EXPECT_FALSE(load());
    }
  }
}

// Decodes random bytes, including scales that no encoder writes.
TEST(KvRowsTest, DecodesAsTheKernelsDo) {
  std::mt19937 random(1);
  for (const KvForm form : {KvForm::kQ8_0, KvForm::kQ4_0, KvForm::kMxfp4}) {
    const auto block_bytes =
        static_cast<size_t>(quant::Traits(static_cast<Type>(form)).block_bytes);
    for (uint32_t scale = 0; scale < 65536; ++scale) {
      alignas(4) std::byte block[36];
      for (std::byte& b : block) b = static_cast<std::byte>(random());
      const auto bits = static_cast<uint16_t>(scale);
      std::memcpy(block, &bits, form == KvForm::kMxfp4 ? 1 : 2);
      ASSERT_LE(block_bytes, sizeof(block));
      float x[32];
      quant::DequantizeRow(static_cast<Type>(form), block, 32, x);
      float floats[32];
      uint16_t halves[32], bf16[32];
      DecodeKvRow(form, block, 32, Type::kF32, reinterpret_cast<std::byte*>(floats));
      DecodeKvRow(form, block, 32, Type::kF16, reinterpret_cast<std::byte*>(halves));
      DecodeKvRow(form, block, 32, Type::kBF16, reinterpret_cast<std::byte*>(bf16));
      for (int i = 0; i < 32; ++i) {
        const float value = quant::Canon(x[i]);
        ASSERT_EQ(quant::Bits(floats[i]), quant::Bits(value)) << KvFormName(form) << " " << scale;
        ASSERT_EQ(halves[i], quant::F32ToF16Saturated(value)) << KvFormName(form) << " " << scale;
        ASSERT_EQ(bf16[i], quant::F32ToBf16(value)) << KvFormName(form) << " " << scale;
      }
    }
  }
}

}  // namespace
}  // namespace trine
