// Loads elements of the KV cache as floats. A row is the key, or the value, of one position for one
// KV head; `row` points to its first byte. Elements from cache.width on are +0, so a caller may
// read beyond the row's end.
//
// REQUIRES: kForm is the cache's form (FormOf in attention.gpu.cc), or kAny. With kAny, functions
// load any row, one element after the other. With the other forms, they load several elements at
// once, so the start of each row and its width must be multiples of:
//   kF32          16 bytes, 4 elements
//   kF16, kBf16   8 bytes, 4 elements
//   kQ8           4 bytes, 32 elements
#pragma once

#include "kernels/hip/attention/attention_args.h"

namespace trine::hip {

// Loads element i of a row of any cache.type. In q8_kv a block of 32 elements has 36 bytes: an f32
// scale, then 32 signed bytes. A type without a case here is read as f32.
TRINE_DEVICE float LoadAny(const CacheArgs& cache, const std::byte* row, uint32_t i) {
  if (i >= cache.width) return 0.0f;
  switch (cache.type) {
    case quant::Type::kF16:
      return HalfToFloat(reinterpret_cast<const uint16_t*>(row)[i]);
    case quant::Type::kBF16:
      return quant::Bf16ToF32(reinterpret_cast<const uint16_t*>(row)[i]);
    case quant::Type::kQ8_KV: {
      const std::byte* block = row + i / 32 * 36;
      const auto q = static_cast<int8_t>(block[4 + i % 32]);
      return *reinterpret_cast<const float*>(block) * static_cast<float>(q);
    }
    default:
      return reinterpret_cast<const float*>(row)[i];
  }
}

// Converts byte i of a word, which is a signed number, to a float. Byte 0 is the lowest.
TRINE_DEVICE float SignedByte(uint32_t word, int i) {
  return static_cast<float>(static_cast<int8_t>(word >> (8 * i)));
}

// Loads element i of the row.
template <CacheForm kForm>
TRINE_DEVICE float Load1(const CacheArgs& cache, const std::byte* row, uint32_t i) {
  if constexpr (kForm == CacheForm::kAny) {
    return LoadAny(cache, row, i);
  } else {
    if (i >= cache.width) return 0.0f;
    if constexpr (kForm == CacheForm::kF16) {
      return HalfToFloat(reinterpret_cast<const uint16_t*>(row)[i]);
    } else if constexpr (kForm == CacheForm::kBf16) {
      return quant::Bf16ToF32(reinterpret_cast<const uint16_t*>(row)[i]);
    } else if constexpr (kForm == CacheForm::kQ8) {
      const std::byte* block = row + i / 32 * 36;
      const auto q = static_cast<int8_t>(block[4 + i % 32]);
      return *reinterpret_cast<const float*>(block) * static_cast<float>(q);
    } else {
      return reinterpret_cast<const float*>(row)[i];
    }
  }
}

// Loads elements i and i + 1 of the row. REQUIRES: i is even.
template <CacheForm kForm>
TRINE_DEVICE void Load2(const CacheArgs& cache, const std::byte* row, uint32_t i, float (&v)[2]) {
  if constexpr (kForm == CacheForm::kAny) {
    v[0] = LoadAny(cache, row, i);
    v[1] = LoadAny(cache, row, i + 1);
  } else if (i >= cache.width) {
    v[0] = v[1] = 0.0f;
  } else if constexpr (kForm == CacheForm::kF16 || kForm == CacheForm::kBf16) {
    const uint32_t word = *reinterpret_cast<const uint32_t*>(row + 2 * i);
    if constexpr (kForm == CacheForm::kF16) {
      v[0] = HalfToFloat(static_cast<uint16_t>(word));
      v[1] = HalfToFloat(static_cast<uint16_t>(word >> 16));
    } else {
      v[0] = FromBits(word << 16);
      v[1] = FromBits(word & 0xffff0000u);
    }
  } else if constexpr (kForm == CacheForm::kQ8) {
    const std::byte* block = row + i / 32 * 36;
    const float d = *reinterpret_cast<const float*>(block);
    const uint32_t word = *reinterpret_cast<const uint16_t*>(block + 4 + i % 32);
    v[0] = d * SignedByte(word, 0);
    v[1] = d * SignedByte(word, 1);
  } else {
    const Word2 words = *reinterpret_cast<const Word2*>(row + 4 * i);
    v[0] = FromBits(words.x);
    v[1] = FromBits(words.y);
  }
}

// Loads elements i to i + 3 of the row. REQUIRES: i is a multiple of 4.
template <CacheForm kForm>
TRINE_DEVICE void Load4(const CacheArgs& cache, const std::byte* row, uint32_t i, float (&v)[4]) {
  if constexpr (kForm == CacheForm::kAny) {
    for (uint32_t k = 0; k < 4; ++k) v[k] = LoadAny(cache, row, i + k);
  } else if (i >= cache.width) {
    v[0] = v[1] = v[2] = v[3] = 0.0f;
  } else if constexpr (kForm == CacheForm::kF16 || kForm == CacheForm::kBf16) {
    const Word2 words = *reinterpret_cast<const Word2*>(row + 2 * i);
    if constexpr (kForm == CacheForm::kF16) {
      v[0] = HalfToFloat(static_cast<uint16_t>(words.x));
      v[1] = HalfToFloat(static_cast<uint16_t>(words.x >> 16));
      v[2] = HalfToFloat(static_cast<uint16_t>(words.y));
      v[3] = HalfToFloat(static_cast<uint16_t>(words.y >> 16));
    } else {
      v[0] = FromBits(words.x << 16);
      v[1] = FromBits(words.x & 0xffff0000u);
      v[2] = FromBits(words.y << 16);
      v[3] = FromBits(words.y & 0xffff0000u);
    }
  } else if constexpr (kForm == CacheForm::kQ8) {
    const std::byte* block = row + i / 32 * 36;
    const float d = *reinterpret_cast<const float*>(block);
    const uint32_t word = *reinterpret_cast<const uint32_t*>(block + 4 + i % 32);
    for (int k = 0; k < 4; ++k) v[k] = d * SignedByte(word, k);
  } else {
    const Float4 values = *reinterpret_cast<const Float4*>(row + 4 * i);
    v[0] = values.x;
    v[1] = values.y;
    v[2] = values.z;
    v[3] = values.w;
  }
}

}  // namespace trine::hip
