#include "runtime/kv_store/kv_rows.h"

#include <algorithm>
#include <cstring>

#include "kernels/quant/dequantize.h"
#include "kernels/quant/float_bits.h"
#include "kernels/quant/scalar.h"

namespace trine {
namespace {

using quant::Bits;
using quant::FromBits;
using quant::Type;

constexpr int kValues = quant::kGroupValues;

// A finite f16. Its bits in an f32's places are off by 2^112, exactly, denormals too.
inline float LoadHalf(uint16_t half) {
  const uint32_t magnitude = (half & 0x7fffu) << 13;
  return FromBits(Bits(FromBits(magnitude) * 0x1p+112f) | (half & 0x8000u) << 16);
}

// F32ToF16Saturated of a canonical x.
inline uint16_t StoreHalf(float x) {
  const uint32_t sign = Bits(x) >> 16 & 0x8000u;
  uint32_t bits = Bits(x) & 0x7fffffffu;
  bits = bits < Bits(quant::kF16Max) ? bits : Bits(quant::kF16Max);
  const uint32_t normal = (bits - 0x38000000u + 0xfffu + (bits >> 13 & 1u)) >> 13;
  // The last bit of 0.5 is 2^-24, that of a denormal f16: adding rounds to it.
  const uint32_t small = Bits(FromBits(bits) + 0.5f) - Bits(0.5f);
  return static_cast<uint16_t>(sign | (bits < Bits(0x1p-14f) ? small : normal));
}

inline uint16_t StoreBf16(float x) {
  return static_cast<uint16_t>((Bits(x) + 0x7fffu + (Bits(x) >> 16 & 1u)) >> 16);
}

// The largest exponent there is stands for what is not finite.
template <class T>
bool AllFinite(const T* x, int64_t values, T exponent) {
  uint32_t found = 0;
  for (int64_t i = 0; i < values; ++i) found |= (x[i] & exponent) == exponent;
  return found == 0;
}

// 32 values of a block whose scale is finite: d * q, canonical. The least scale is 2^-46.
inline void Scale(float d, const int8_t* q, float* x) {
  for (int i = 0; i < kValues; ++i) {
    const float value = d * static_cast<float>(q[i]) + 0.0f;  // no -0
    x[i] = std::min(std::max(value, -quant::kHuge), quant::kHuge);
  }
}

// quant::kMxfp4Values[code], without a table: two bits, moved by an exponent.
inline int8_t Mxfp4Value(uint8_t code) {
  const int m = code & 7;
  const int value = m < 2 ? m : (2 | (m & 1)) << ((m >> 1) - (m >= 2));
  return static_cast<int8_t>((code & 8) != 0 ? -value : value);
}

inline bool IsFiniteHalf(uint16_t half) { return (half & 0x7c00u) != 0x7c00u; }

// False: a block that was never encoded.
bool DecodeGroup(KvForm form, const std::byte* row, int64_t group, float* x) {
  int8_t q[kValues];
  if (form == KvForm::kQ8_0) {
    quant::BlockQ8_0 block;
    std::memcpy(&block, row + group * static_cast<int64_t>(sizeof(block)), sizeof(block));
    if (!IsFiniteHalf(block.d)) return false;
    Scale(quant::F16ToF32(block.d), block.q, x);
  } else if (form == KvForm::kQ4_0) {
    quant::BlockQ4_0 block;
    std::memcpy(&block, row + group * static_cast<int64_t>(sizeof(block)), sizeof(block));
    if (!IsFiniteHalf(block.d)) return false;
    for (int i = 0; i < kValues / 2; ++i) {
      q[i] = static_cast<int8_t>((block.nibbles[i] & 15) - 8);
      q[i + kValues / 2] = static_cast<int8_t>((block.nibbles[i] >> 4) - 8);
    }
    Scale(quant::F16ToF32(block.d), q, x);
  } else {
    quant::BlockMXFP4 block;
    std::memcpy(&block, row + group * static_cast<int64_t>(sizeof(block)), sizeof(block));
    const int exponent =
        std::clamp(block.e - 128, quant::kMxfp4MinExponent, quant::kMxfp4MaxExponent);
    for (int i = 0; i < kValues / 2; ++i) {
      q[i] = Mxfp4Value(block.nibbles[i] & 15);
      q[i + kValues / 2] = Mxfp4Value(block.nibbles[i] >> 4);
    }
    Scale(FromBits(static_cast<uint32_t>(exponent + 127) << 23), q, x);
  }
  return true;
}

void Store(Type type, const float* x, std::byte* to) {
  if (type == Type::kF32) {
    std::memcpy(to, x, kValues * sizeof(float));
    return;
  }
  uint16_t halves[kValues];
  if (type == Type::kF16) {
    for (int i = 0; i < kValues; ++i) halves[i] = StoreHalf(x[i]);
  } else {
    for (int i = 0; i < kValues; ++i) halves[i] = StoreBf16(x[i]);
  }
  std::memcpy(to, halves, sizeof(halves));
}

}  // namespace

bool LoadKvValues(Type type, const std::byte* from, int64_t values, float* out) {
  if (type == Type::kF32) {
    const auto* x = reinterpret_cast<const uint32_t*>(from);
    if (!AllFinite<uint32_t>(x, values, 0x7f800000u)) return false;
    std::memcpy(out, from, static_cast<size_t>(values) * sizeof(float));
    return true;
  }
  const auto* x = reinterpret_cast<const uint16_t*>(from);
  if (type == Type::kF16) {
    if (!AllFinite<uint16_t>(x, values, 0x7c00u)) return false;
    for (int64_t i = 0; i < values; ++i) out[i] = LoadHalf(x[i]);
    return true;
  }
  if (!AllFinite<uint16_t>(x, values, 0x7f80u)) return false;
  for (int64_t i = 0; i < values; ++i) out[i] = quant::Bf16ToF32(x[i]);
  return true;
}

void DecodeKvRow(KvForm form, const std::byte* row, int64_t values, Type type, std::byte* to) {
  const int64_t group_bytes = kValues * (type == Type::kF32 ? 4 : 2);
  for (int64_t group = 0; group < values / kValues; ++group) {
    float x[kValues];
    if (!DecodeGroup(form, row, group, x)) {
      quant::DequantizeGroup(static_cast<Type>(form), row, group, kValues, x);
      for (float& value : x) value = quant::Canon(value);
    }
    Store(type, x, to + group * group_bytes);
  }
}

}  // namespace trine
