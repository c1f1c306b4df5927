#include "runtime/kv_store/kv_codec.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "kernels/quant/dequantize.h"
#include "kernels/quant/encode.h"
#include "kernels/quant/float_bits.h"
#include "kernels/quant/scalar.h"
#include "runtime/base/invalid.h"

namespace trine {
namespace {

quant::Type TypeOf(KvForm form) { return static_cast<quant::Type>(form); }

// Returns whether `form` is lossy and can hold rows of this type and length.
bool Holds(KvForm form, quant::Type type, int64_t values) {
  if (form == KvForm::kRaw || quant::IsQuantized(type)) return false;
  return values % quant::Traits(TypeOf(form)).block_values == 0;
}

using quant::Bits;
using quant::FromBits;
using quant::Type;

constexpr int kValues = quant::kGroupValues;

// Converts a finite f16. Its bits in an f32's places are off by exactly 2^112, denormals too.
inline float LoadHalf(uint16_t half) {
  const uint32_t magnitude = (half & 0x7fffu) << 13;
  return FromBits(Bits(FromBits(magnitude) * 0x1p+112f) | (half & 0x8000u) << 16);
}

// Returns F32ToF16Saturated(x). REQUIRES: x is canonical.
inline uint16_t StoreHalf(float x) {
  const uint32_t sign = Bits(x) >> 16 & 0x8000u;
  uint32_t bits = Bits(x) & 0x7fffffffu;
  bits = bits < Bits(quant::kF16Max) ? bits : Bits(quant::kF16Max);
  const uint32_t normal = (bits - 0x38000000u + 0xfffu + (bits >> 13 & 1u)) >> 13;
  // The last bit of 0.5 is 2^-24, as is that of a denormal f16, so the addition rounds to it.
  const uint32_t small = Bits(FromBits(bits) + 0.5f) - Bits(0.5f);
  return static_cast<uint16_t>(sign | (bits < Bits(0x1p-14f) ? small : normal));
}

inline uint16_t StoreBf16(float x) {
  return static_cast<uint16_t>((Bits(x) + 0x7fffu + (Bits(x) >> 16 & 1u)) >> 16);
}

// `exponent` is the largest exponent, which all infinities and NaNs have.
template <class T>
bool AllFinite(const T* x, int64_t values, T exponent) {
  uint32_t found = 0;
  for (int64_t i = 0; i < values; ++i) found |= (x[i] & exponent) == exponent;
  return found == 0;
}

// Computes the 32 canonical values d * q of a block with a finite scale. The least scale is 2^-46.
inline void Scale(float d, const int8_t* q, float* x) {
  for (int i = 0; i < kValues; ++i) {
    const float value = d * static_cast<float>(q[i]) + 0.0f;  // turns -0 into 0
    x[i] = std::min(std::max(value, -quant::kHuge), quant::kHuge);
  }
}

// Returns quant::kMxfp4Values[code] without a table: two bits, shifted by an exponent.
inline int8_t Mxfp4Value(uint8_t code) {
  const int m = code & 7;
  const int value = m < 2 ? m : (2 | (m & 1)) << ((m >> 1) - (m >= 2));
  return static_cast<int8_t>((code & 8) != 0 ? -value : value);
}

inline bool IsFiniteHalf(uint16_t half) { return (half & 0x7c00u) != 0x7c00u; }

// Returns false for a block that no encoder writes.
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

absl::StatusOr<KvCodec> KvCodec::Create(const KvLayout& layout) {
  const auto bytes = layout.BlockBytes();
  if (!bytes.ok()) return bytes.status();
  for (const quant::Type type : {layout.type_k, layout.type_v}) {
    if (type == quant::Type::kF32 || type == quant::Type::kF16 || type == quant::Type::kBF16) {
      continue;
    }
    if (quant::IsQuantized(type)) continue;
    return Invalid(quant::Traits(type).name, " is no type of a cache");
  }
  KvCodec codec;
  codec.layers_ = layout.layers;
  codec.block_bytes_ = *bytes;
  const uint64_t rows = uint64_t{layout.kv_heads} * layout.positions;
  codec.parts_[0] = {layout.type_k, layout.head_dim_k, 0, rows};
  codec.parts_[1] = {layout.type_v, layout.head_dim_v, 0, rows};
  for (Part& part : codec.parts_) quant::RowBytes(part.type, part.values, &part.row_bytes);
  return codec;
}

uint64_t KvCodec::RowBytes(const Part& part, KvForm form) const {
  if (!Holds(form, part.type, part.values)) return part.row_bytes;
  uint64_t bytes = 0;
  quant::RowBytes(TypeOf(form), part.values, &bytes);
  return bytes;
}

uint64_t KvCodec::EncodedBytes(KvForm form) const {
  uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.rows * RowBytes(part, form);
  return layers_ * bytes;
}

bool KvCodec::IsExact(KvForm form) const {
  for (const Part& part : parts_) {
    if (Holds(form, part.type, part.values)) return false;
  }
  return true;
}

bool KvCodec::EncodePart(const Part& part, KvForm form, const std::byte* from,
                         std::byte* to) const {
  if (!Holds(form, part.type, part.values)) {
    std::memcpy(to, from, part.rows * part.row_bytes);
    return true;
  }
  const uint64_t encoded = RowBytes(part, form);
  std::vector<float> row(static_cast<size_t>(part.values));
  for (uint64_t r = 0; r < part.rows; ++r) {
    if (!LoadKvValues(part.type, from + r * part.row_bytes, part.values, row.data()) ||
        !quant::EncodeRow(TypeOf(form), row.data(), part.values, nullptr, to + r * encoded)) {
      return false;
    }
  }
  return true;
}

void KvCodec::DecodePart(const Part& part, KvForm form, const std::byte* from,
                         std::byte* to) const {
  if (!Holds(form, part.type, part.values)) {
    std::memcpy(to, from, part.rows * part.row_bytes);
    return;
  }
  const uint64_t encoded = RowBytes(part, form);
  for (uint64_t r = 0; r < part.rows; ++r) {
    DecodeKvRow(form, from + r * encoded, part.values, part.type, to + r * part.row_bytes);
  }
}

absl::StatusOr<KvPayload> KvCodec::Encode(KvForm form, std::span<const std::byte> block) const {
  if (block.size() != block_bytes_) {
    return Invalid("a block of ", block.size(), " bytes, not ", block_bytes_);
  }
  if (!IsExact(form)) {
    KvPayload payload(form, EncodedBytes(form));
    const std::byte* from = block.data();
    std::byte* to = payload.data.get();
    bool held = true;
    for (uint32_t i = 0; held && i < 2 * layers_; ++i) {
      const Part& part = parts_[i % 2];
      held = EncodePart(part, form, from, to);
      from += part.rows * part.row_bytes;
      to += part.rows * RowBytes(part, form);
    }
    if (held) return payload;
  }
  KvPayload payload(KvForm::kRaw, block_bytes_);
  std::memcpy(payload.data.get(), block.data(), block.size());
  return payload;
}

absl::StatusOr<bool> KvCodec::Decode(const KvPayload& payload, std::span<std::byte> block) const {
  if (!IsKvForm(static_cast<uint32_t>(payload.form))) {
    return absl::InvalidArgumentError("a block in no known form");
  }
  if (block.size() != block_bytes_ || payload.size != EncodedBytes(payload.form)) {
    return Invalid(payload.size, " bytes of ", KvFormName(payload.form), " for a block of ",
                   block.size(), ", not ", EncodedBytes(payload.form), " for one of ",
                   block_bytes_);
  }
  const std::byte* from = payload.data.get();
  std::byte* to = block.data();
  for (uint32_t i = 0; i < 2 * layers_; ++i) {
    const Part& part = parts_[i % 2];
    DecodePart(part, payload.form, from, to);
    from += part.rows * RowBytes(part, payload.form);
    to += part.rows * part.row_bytes;
  }
  return IsExact(payload.form);
}

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
