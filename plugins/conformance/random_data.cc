#include "plugins/conformance/random_data.h"

#include <cstring>

#include "kernels/quant/activation.h"
#include "kernels/quant/block_types.h"
#include "kernels/quant/scalar.h"

namespace trine::conformance {
namespace {

using quant::Type;

// An f16 scale: mostly a model's, now and then zero, negative, denormal or large.
uint16_t RandomScale(Random& random) {
  switch (random.Below(16)) {
    case 0:
      return 0;
    case 1:
      return static_cast<uint16_t>(1 + random.Below(0x3ff));  // denormal
    case 2:
      return quant::F32ToF16(100.0f * random.Bell());
    default:
      return quant::F32ToF16(0.02f * random.Bell());
  }
}

template <class Block>
void SetScale(Random& random, std::byte* block, uint16_t Block::*member) {
  Block b;
  std::memcpy(&b, block, sizeof(b));
  b.*member = RandomScale(random);
  std::memcpy(block, &b, sizeof(b));
}

// Base-3 digits as TQ1_0 stores them: a byte is the digits' number scaled to 256, rounded up.
void FillTq1(Random& random, std::byte* block) {
  quant::BlockTQ1_0 b;
  for (uint8_t& five : b.five) five = static_cast<uint8_t>((random.Below(243) * 256 + 242) / 243);
  for (uint8_t& four : b.four) {
    four = static_cast<uint8_t>((random.Below(81) * 3 * 256 + 242) / 243);
  }
  b.d = RandomScale(random);
  std::memcpy(block, &b, sizeof(b));
}

void FillTq2(Random& random, std::byte* block) {
  quant::BlockTQ2_0 b;
  for (uint8_t& q : b.q) {
    q = 0;
    for (int i = 0; i < 4; ++i) q = static_cast<uint8_t>(q << 2 | random.Below(3));
  }
  b.d = RandomScale(random);
  std::memcpy(block, &b, sizeof(b));
}

// The scales of a block that has just been filled with random bytes.
void SetScales(Random& random, Type type, std::byte* block) {
  switch (type) {
    case Type::kQ4_0:
      return SetScale(random, block, &quant::BlockQ4_0::d);
    case Type::kQ4_1:
      SetScale(random, block, &quant::BlockQ4_1::d);
      return SetScale(random, block, &quant::BlockQ4_1::m);
    case Type::kQ5_0:
      return SetScale(random, block, &quant::BlockQ5_0::d);
    case Type::kQ5_1:
      SetScale(random, block, &quant::BlockQ5_1::d);
      return SetScale(random, block, &quant::BlockQ5_1::m);
    case Type::kQ8_0:
      return SetScale(random, block, &quant::BlockQ8_0::d);
    case Type::kQ2_K:
      SetScale(random, block, &quant::BlockQ2_K::d);
      return SetScale(random, block, &quant::BlockQ2_K::dmin);
    case Type::kQ3_K:
      return SetScale(random, block, &quant::BlockQ3_K::d);
    case Type::kQ4_K:
      SetScale(random, block, &quant::BlockQ4_K::d);
      return SetScale(random, block, &quant::BlockQ4_K::dmin);
    case Type::kQ5_K:
      SetScale(random, block, &quant::BlockQ5_K::d);
      return SetScale(random, block, &quant::BlockQ5_K::dmin);
    case Type::kQ6_K:
      return SetScale(random, block, &quant::BlockQ6_K::d);
    case Type::kIQ4_NL:
      return SetScale(random, block, &quant::BlockIQ4_NL::d);
    case Type::kIQ4_XS:
      return SetScale(random, block, &quant::BlockIQ4_XS::d);
    case Type::kTQ1_0:
      return FillTq1(random, block);
    case Type::kTQ2_0:
      return FillTq2(random, block);
    case Type::kMXFP4:
      block[0] = static_cast<std::byte>(random.Below(16) == 0 ? random.Below(255)
                                                              : 112 + random.Below(24));
      return;
    default:
      return;
  }
}

void StoreFloat(Type type, float value, std::byte* out) {
  if (type == Type::kF32) {
    std::memcpy(out, &value, sizeof(value));
    return;
  }
  const uint16_t half =
      type == Type::kF16 ? quant::F32ToF16Saturated(value) : quant::F32ToBf16(value);
  std::memcpy(out, &half, sizeof(half));
}

}  // namespace

float Random::Bell() {
  float sum = -6.0f;
  for (int i = 0; i < 12; ++i) sum += Unit();
  return sum;
}

float RandomValue(Random& random, Spread32 spread) {
  switch (spread) {
    case Spread32::kBell:
      return quant::Canon(random.Bell());
    case Spread32::kWide: {
      const auto exponent = static_cast<uint32_t>(127 - 50 + random.Below(100));
      const auto fraction = static_cast<uint32_t>(random.Next() & 0x807fffffu);
      return quant::Canon(quant::FromBits(fraction | exponent << 23));
    }
    case Spread32::kTiny:
      return quant::Canon(random.Bell() * 0x1p-50f);
    case Spread32::kZeros:
      return 0.0f;
    case Spread32::kOutliers:
      return quant::Canon(random.Bell() * (random.Below(50) == 0 ? 1000.0f : 1.0f));
  }
  return 0.0f;
}

void FillWeights(Random& random, uint32_t dtype, Spread32 spread, std::byte* data, size_t bytes) {
  const auto type = static_cast<Type>(dtype);
  const auto block_bytes = static_cast<size_t>(quant::Traits(type).block_bytes);
  for (size_t at = 0; at + block_bytes <= bytes; at += block_bytes) {
    if (!quant::IsQuantized(type)) {
      float value = RandomValue(random, spread);
      // Rounding to bf16 can leave the canonical range at its upper end.
      if (type == Type::kBF16) value = quant::Canon(quant::Bf16ToF32(quant::F32ToBf16(value)));
      StoreFloat(type, value, data + at);
      continue;
    }
    for (size_t i = 0; i < block_bytes; ++i) data[at + i] = static_cast<std::byte>(random.Next());
    SetScales(random, type, data + at);
  }
}

void FillCache(Random& random, uint32_t dtype, std::byte* data, size_t bytes) {
  const auto type = static_cast<Type>(dtype);
  const auto block_bytes = static_cast<size_t>(quant::Traits(type).block_bytes);
  for (size_t at = 0; at + block_bytes <= bytes; at += block_bytes) {
    if (type != Type::kQ8_KV) {
      StoreFloat(type, random.Bell(), data + at);
      continue;
    }
    float values[quant::kGroupValues];
    for (float& v : values) v = quant::Canon(random.Bell());
    quant::BlockQ8_KV block;
    quant::QuantizeKv(values, &block);
    std::memcpy(data + at, &block, sizeof(block));
  }
}

}  // namespace trine::conformance
