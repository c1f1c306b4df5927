#include "runtime/kv_store/kv_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kernels/quant/dequantize.h"
#include "kernels/quant/encode.h"
#include "kernels/quant/float_bits.h"
#include "kernels/quant/scalar.h"

namespace trine {
namespace {

using quant::Type;
using Bytes = std::vector<std::byte>;

KvLayout Layout(Type type_k, Type type_v, uint32_t head_dim_k = 64, uint32_t head_dim_v = 64) {
  KvLayout layout;
  layout.layers = 3;
  layout.kv_heads = 2;
  layout.head_dim_k = head_dim_k;
  layout.head_dim_v = head_dim_v;
  layout.type_k = type_k;
  layout.type_v = type_v;
  return layout;
}

// Returns a block of canonical float values, with some zeros.
Bytes RandomBlock(const KvLayout& layout, uint32_t seed) {
  Bytes block(*layout.BlockBytes());
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  size_t at = 0;
  for (uint32_t i = 0; i < 2 * layout.layers; ++i) {
    const Type type = i % 2 == 0 ? layout.type_k : layout.type_v;
    const uint64_t values = uint64_t{layout.kv_heads} * layout.positions *
                            (i % 2 == 0 ? layout.head_dim_k : layout.head_dim_v);
    std::vector<float> x(values);
    for (float& value : x) value = random() % 50 == 0 ? 0.0f : quant::Canon(normal(random));
    if (type == Type::kQ8_KV) {
      for (uint64_t b = 0; b < values / 32; ++b, at += 36) {
        std::memcpy(block.data() + at, &x[b], 4);
        for (int k = 0; k < 32; ++k) block[at + 4 + k] = static_cast<std::byte>(random());
      }
      continue;
    }
    quant::EncodeRow(type, x.data(), static_cast<int64_t>(values), nullptr, block.data() + at);
    uint64_t bytes = 0;
    quant::RowBytes(type, static_cast<int64_t>(values), &bytes);
    at += bytes;
  }
  return block;
}

std::vector<float> Floats(Type type, const Bytes& block) {
  const auto values =
      static_cast<int64_t>(block.size() / static_cast<size_t>(quant::Traits(type).block_bytes));
  std::vector<float> x(static_cast<size_t>(values));
  quant::DequantizeRow(type, block.data(), values, x.data());
  return x;
}

struct RoundTrip {
  KvForm form;
  bool exact;
  Bytes block;
};

RoundTrip ThereAndBack(const KvLayout& layout, KvForm form, const Bytes& block) {
  const KvCodec codec = *KvCodec::Create(layout);
  const auto payload = codec.Encode(form, block);
  EXPECT_TRUE(payload.ok()) << payload.status();
  EXPECT_EQ(payload->size, codec.EncodedBytes(payload->form));
  Bytes back(block.size(), std::byte{0xee});
  const auto exact = codec.Decode(*payload, back);
  EXPECT_TRUE(exact.ok()) << exact.status();
  return {payload->form, *exact, back};
}

TEST(KvCodecTest, RawIsAsItWas) {
  for (const Type k : {Type::kF16, Type::kF32, Type::kBF16, Type::kQ8_KV}) {
    for (const Type v : {Type::kF16, Type::kQ8_KV}) {
      const KvLayout layout = Layout(k, v);
      const Bytes block = RandomBlock(layout, 1);
      const RoundTrip r = ThereAndBack(layout, KvForm::kRaw, block);
      EXPECT_TRUE(r.exact);
      EXPECT_EQ(r.form, KvForm::kRaw);
      EXPECT_EQ(r.block, block);
    }
  }
}

// Allows half a step of the form's grid for the largest of each 32 values; mxfp4's steps differ.
TEST(KvCodecTest, LossyFormsStayNear) {
  struct Bound {
    KvForm form;
    float step;  // relative to the largest magnitude of a group
    uint64_t bytes;
  };
  for (const Bound& bound : {Bound{KvForm::kQ8_0, 0.0045f, 34}, Bound{KvForm::kQ4_0, 0.16f, 18},
                             Bound{KvForm::kMxfp4, 0.26f, 17}}) {
    for (const Type type : {Type::kF16, Type::kF32, Type::kBF16}) {
      const KvLayout layout = Layout(type, type);
      const Bytes block = RandomBlock(layout, 2);
      const RoundTrip r = ThereAndBack(layout, bound.form, block);
      EXPECT_FALSE(r.exact);
      EXPECT_EQ(r.form, bound.form);
      // Adds bf16's own rounding.
      const float step = bound.step + (type == Type::kBF16 ? 0x1p-8f : 0.0f);
      const std::vector<float> was = Floats(type, block), is = Floats(type, r.block);
      for (size_t g = 0; g < was.size(); g += 32) {
        float most = 0;
        for (size_t i = g; i < g + 32; ++i) most = std::max(most, std::abs(was[i]));
        for (size_t i = g; i < g + 32; ++i) {
          ASSERT_LE(std::abs(was[i] - is[i]), step * most) << KvFormName(bound.form);
          ASSERT_FALSE(is[i] == 0.0f && std::signbit(is[i]));
        }
      }
      const uint64_t values = was.size();
      EXPECT_EQ(KvCodec::Create(layout)->EncodedBytes(bound.form), values / 32 * bound.bytes);
    }
  }
}

TEST(KvCodecTest, DecodingIsWhatTheKernelsSay) {
  for (const KvForm form : {KvForm::kQ8_0, KvForm::kQ4_0, KvForm::kMxfp4}) {
    const KvLayout layout = Layout(Type::kF16, Type::kF16);
    const KvCodec codec = *KvCodec::Create(layout);
    const Bytes block = RandomBlock(layout, 3);
    const auto payload = codec.Encode(form, block);
    Bytes back(block.size());
    ASSERT_TRUE(codec.Decode(*payload, back).ok());
    std::vector<float> x(block.size() / 2);
    quant::DequantizeRow(static_cast<Type>(form), payload->data.get(),
                         static_cast<int64_t>(x.size()), x.data());
    for (size_t i = 0; i < x.size(); ++i) {
      uint16_t half = 0;
      std::memcpy(&half, back.data() + 2 * i, 2);
      ASSERT_EQ(half, quant::F32ToF16Saturated(quant::Canon(x[i]))) << i;
    }
  }
}

TEST(KvCodecTest, TheSameEveryTimeAndOnEveryThread) {
  const KvLayout layout = Layout(Type::kF16, Type::kBF16);
  const Bytes block = RandomBlock(layout, 4);
  const KvCodec codec = *KvCodec::Create(layout);
  for (const KvForm form : kAllKvForms) {
    const auto first = codec.Encode(form, block);
    const RoundTrip once = ThereAndBack(layout, form, block);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        const auto again = codec.Encode(form, block);
        EXPECT_EQ(std::memcmp(again->data.get(), first->data.get(), first->size), 0);
        Bytes back(block.size());
        EXPECT_TRUE(codec.Decode(*again, back).ok());
        EXPECT_EQ(back, once.block);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(KvCodecTest, RowsThatAFormCanNotHoldStayAsTheyAre) {
  // K has rows of 80 values, which is not a multiple of 32, so only V is lossy.
  const KvLayout odd = Layout(Type::kF16, Type::kF16, 80, 96);
  const Bytes block = RandomBlock(odd, 5);
  const RoundTrip r = ThereAndBack(odd, KvForm::kQ4_0, block);
  EXPECT_FALSE(r.exact);
  const size_t k = 2 * 64 * 80 * 2;
  EXPECT_EQ(std::memcmp(r.block.data(), block.data(), k), 0);
  EXPECT_NE(std::memcmp(r.block.data() + k, block.data() + k, 2 * 64 * 96 * 2), 0);
  // Neither K nor V can be held: nothing is lost, and the form is raw.
  for (const KvLayout& layout :
       {Layout(Type::kF16, Type::kF16, 80, 80), Layout(Type::kQ8_KV, Type::kQ8_KV)}) {
    const Bytes whole = RandomBlock(layout, 6);
    EXPECT_TRUE(KvCodec::Create(layout)->IsExact(KvForm::kQ4_0));
    const RoundTrip same = ThereAndBack(layout, KvForm::kQ4_0, whole);
    EXPECT_TRUE(same.exact);
    EXPECT_EQ(same.form, KvForm::kRaw);
    EXPECT_EQ(same.block, whole);
  }
}

TEST(KvCodecTest, WhatIsNotFiniteIsKeptRaw) {
  const KvLayout layout = Layout(Type::kF32, Type::kF32);
  Bytes block = RandomBlock(layout, 7);
  const float infinity = std::numeric_limits<float>::infinity();
  std::memcpy(block.data() + block.size() - 4, &infinity, 4);
  const RoundTrip r = ThereAndBack(layout, KvForm::kQ8_0, block);
  EXPECT_TRUE(r.exact);
  EXPECT_EQ(r.block, block);
}

TEST(KvCodecTest, WrongSizesAreRefused) {
  const KvLayout layout = Layout(Type::kF16, Type::kF16);
  const KvCodec codec = *KvCodec::Create(layout);
  Bytes block = RandomBlock(layout, 8);
  EXPECT_FALSE(codec.Encode(KvForm::kRaw, std::span(block).first(block.size() - 1)).ok());
  EXPECT_FALSE(codec.Decode(KvPayload(KvForm::kRaw, block.size() - 1), block).ok());
  EXPECT_FALSE(codec.Decode(KvPayload(KvForm::kQ8_0, block.size()), block).ok());
  EXPECT_FALSE(codec.Decode(KvPayload(static_cast<KvForm>(3), block.size()), block).ok());
  KvLayout wrong = layout;
  wrong.type_k = Type::kI32;
  EXPECT_FALSE(KvCodec::Create(wrong).ok());
}

TEST(KvFormTest, Names) {
  for (const KvForm form : kAllKvForms) EXPECT_EQ(ParseKvForm(KvFormName(form)), form);
  EXPECT_EQ(ParseKvForm("q5_0"), std::nullopt);
}

}  // namespace
}  // namespace trine
