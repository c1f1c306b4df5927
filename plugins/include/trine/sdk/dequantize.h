// Decodes rows of weights to f32, for backends that multiply in floats.
//
// Knows every type of weights and of caches: f32, f16, bf16 and all block formats of the ABI. Their
// tables have 16 entries at most; the GGUF types with large codebooks (IQ1 to IQ3) are no types of
// the ABI. Gives the bits of the host's own decoder (docs/numerics.md, "Weight types"):
//
//   weight = (d * scale) * q - dmin * min
//
// without the factors that a format lacks. Where a format has minimums both products are exact, so
// a compiler that makes an fma of the line changes no bit.
#ifndef TRINE_SDK_DEQUANTIZE_H_
#define TRINE_SDK_DEQUANTIZE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "trine/sdk/dtype.h"

namespace trine::sdk {

namespace internal {

// 32 consecutive weights of a row. Weight i is scale[i / 16] * q[i] - minimum[i / 16].
struct WeightGroup {
  float scale[2];
  float minimum[2];
  int8_t q[32];
};

inline constexpr int kGroupWeights = 32;

// ---- Numbers of a block: little-endian, at any address ---------------------------------------

inline float FloatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline uint32_t BitsOfFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline uint32_t HalfAt(const uint8_t* at) {
  return static_cast<uint32_t>(at[0]) | static_cast<uint32_t>(at[1]) << 8;
}

inline uint32_t WordAt(const uint8_t* at) { return HalfAt(at) | HalfAt(at + 2) << 16; }

// Converts every f16 exactly. Has no branch, so that a loop can be vectorised, and no denormal
// operand, because a processor may be set to flush those to zero.
inline float F16ToFloat(uint32_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = half >> 10 & 31u, fraction = half << 13 & 0x7fe000u;
  const auto is_denormal = static_cast<uint32_t>(exponent == 0);
  const auto is_infinite = static_cast<uint32_t>(exponent == 31);
  const uint32_t normal = (exponent + 112u + 112u * is_infinite) << 23 | fraction;
  const uint32_t denormal = BitsOfFloat(FloatOfBits(113u << 23 | fraction) - 0x1p-14f);
  return FloatOfBits(sign | (denormal & (0u - is_denormal)) | (normal & (is_denormal - 1u)));
}

inline float Bf16ToFloat(uint32_t half) { return FloatOfBits(half << 16); }

inline float F16At(const uint8_t* at) { return F16ToFloat(HalfAt(at)); }

// ---- Pieces of groups ------------------------------------------------------------------------

inline void SetScale(float scale, WeightGroup* g) {
  g->scale[0] = g->scale[1] = scale;
  g->minimum[0] = g->minimum[1] = 0.0f;
}

inline void SetScaleAndMinimum(float scale, float minimum, WeightGroup* g) {
  g->scale[0] = g->scale[1] = scale;
  g->minimum[0] = g->minimum[1] = minimum;
}

// Takes 16 bytes apart: their low halves are the first 16 values, their high halves the others.
inline void TakeNibbles(const uint8_t* from, int8_t* q) {
  for (int i = 0; i < 16; ++i) {
    q[i] = static_cast<int8_t>(from[i] & 15);
    q[i + 16] = static_cast<int8_t>(from[i] >> 4);
  }
}

// Takes some bits of each of `count` bytes.
inline void TakeBits(const uint8_t* from, int count, int shift, int mask, int8_t* q) {
  for (int i = 0; i < count; ++i) q[i] = static_cast<int8_t>(from[i] >> shift & mask);
}

// Adds bits of 32 bytes above the bits that the values have.
inline void AddBits(const uint8_t* from, int shift, int mask, int above, int8_t* q) {
  for (int i = 0; i < kGroupWeights; ++i) {
    q[i] = static_cast<int8_t>(q[i] | (from[i] >> shift & mask) << above);
  }
}

// Adds bit i of `bits` to value i, as its fifth bit.
inline void AddFifthBits(uint32_t bits, int8_t* q) {
  for (int i = 0; i < kGroupWeights; ++i) {
    q[i] = static_cast<int8_t>(q[i] | static_cast<int>(bits >> i & 1u) << 4);
  }
}

inline void Subtract(int zero, int8_t* q) {
  for (int i = 0; i < kGroupWeights; ++i) q[i] = static_cast<int8_t>(q[i] - zero);
}

inline void LookUp(const int8_t* table, int8_t* q) {
  for (int i = 0; i < kGroupWeights; ++i) q[i] = table[q[i]];
}

inline void LookUpIq4(int8_t* q) {
  static constexpr int8_t kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
  LookUp(kValues, q);
}

inline void LookUpMxfp4(int8_t* q) {
  static constexpr int8_t kValues[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  LookUp(kValues, q);
}

// Takes a base-3 digit of each of `count` bytes; `power` is 3^digit. A byte holds its digits as a
// fraction of 256: the product modulo 256 drops the digits before, and a factor of 3 carries the
// wanted one above the byte.
inline void TakeDigits(const uint8_t* from, int count, int power, int8_t* q) {
  for (int i = 0; i < count; ++i) q[i] = static_cast<int8_t>((from[i] * power & 255) * 3 >> 8);
}

// Sets the scale and the minimum of a part of Q4_K or Q5_K. `packed` holds eight of each, of six
// bits. Of the last four, bytes 8 to 11 hold the low halves, and the top bits of the bytes of the
// first four hold the rest.
inline void SetPackedScale(const uint8_t* block, int part, WeightGroup* g) {
  const uint8_t* packed = block + 4;
  const int low = packed[part & 3], high = packed[4 + (part & 3)], last = packed[8 + (part & 3)];
  const int scale = part < 4 ? low & 63 : (last & 15) | low >> 6 << 4;
  const int minimum = part < 4 ? high & 63 : last >> 4 | high >> 6 << 4;
  SetScaleAndMinimum(F16At(block) * static_cast<float>(scale),
                     F16At(block + 2) * static_cast<float>(minimum), g);
}

// ---- Formats: part `part` of a block, 32 weights ---------------------------------------------

inline void LoadQ4_0(const uint8_t* block, int, WeightGroup* g) {
  SetScale(F16At(block), g);
  TakeNibbles(block + 2, g->q);
  Subtract(8, g->q);
}

inline void LoadQ4_1(const uint8_t* block, int, WeightGroup* g) {
  SetScaleAndMinimum(F16At(block), -F16At(block + 2), g);
  TakeNibbles(block + 4, g->q);
}

inline void LoadQ5_0(const uint8_t* block, int, WeightGroup* g) {
  SetScale(F16At(block), g);
  TakeNibbles(block + 6, g->q);
  AddFifthBits(WordAt(block + 2), g->q);
  Subtract(16, g->q);
}

inline void LoadQ5_1(const uint8_t* block, int, WeightGroup* g) {
  SetScaleAndMinimum(F16At(block), -F16At(block + 2), g);
  TakeNibbles(block + 8, g->q);
  AddFifthBits(WordAt(block + 4), g->q);
}

inline void LoadQ8_0(const uint8_t* block, int, WeightGroup* g) {
  SetScale(F16At(block), g);
  std::memcpy(g->q, block + 2, sizeof(g->q));
}

inline void LoadQ8Kv(const uint8_t* block, int, WeightGroup* g) {
  SetScale(FloatOfBits(WordAt(block)), g);
  std::memcpy(g->q, block + 4, sizeof(g->q));
}

inline void LoadIq4Nl(const uint8_t* block, int, WeightGroup* g) {
  SetScale(F16At(block), g);
  TakeNibbles(block + 2, g->q);
  LookUpIq4(g->q);
}

// The scale is 2^(e - 128), its exponent clamped as the contract says.
inline void LoadMxfp4(const uint8_t* block, int, WeightGroup* g) {
  const int exponent = std::clamp(block[0] - 128, -46, 50);
  SetScale(FloatOfBits(static_cast<uint32_t>(exponent + 127) << 23), g);
  TakeNibbles(block + 1, g->q);
  LookUpMxfp4(g->q);
}

// Two-bit values lie in two runs of 32 bytes. Each run holds four parts, from the low bits up.
inline void LoadQ2K(const uint8_t* block, int part, WeightGroup* g) {
  const float d = F16At(block + 80), dmin = F16At(block + 82);
  for (int h = 0; h < 2; ++h) {
    const int packed = block[2 * part + h];
    g->scale[h] = d * static_cast<float>(packed & 15);
    g->minimum[h] = dmin * static_cast<float>(packed >> 4);
  }
  TakeBits(block + 16 + 32 * (part / 4), kGroupWeights, 2 * (part % 4), 3, g->q);
}

// The block has 16 scales of six bits. Bytes 96 to 103 hold their low four bits, bytes 104 to 107
// their high two.
inline void LoadQ3K(const uint8_t* block, int part, WeightGroup* g) {
  const float d = F16At(block + 108);
  SetScale(0.0f, g);
  for (int h = 0; h < 2; ++h) {
    const int low = block[96 + 2 * (part % 4) + h] >> 4 * (part / 4) & 15;
    const int high = block[104 + 2 * (part % 2) + h] >> 2 * (part / 2) & 3;
    g->scale[h] = d * static_cast<float>((low | high << 4) - 32);
  }
  TakeBits(block + 32 + 32 * (part / 4), kGroupWeights, 2 * (part % 4), 3, g->q);
  AddBits(block, part, 1, 2, g->q);
  Subtract(4, g->q);
}

inline void LoadQ4K(const uint8_t* block, int part, WeightGroup* g) {
  SetPackedScale(block, part, g);
  TakeBits(block + 16 + 32 * (part / 2), kGroupWeights, 4 * (part % 2), 15, g->q);
}

inline void LoadQ5K(const uint8_t* block, int part, WeightGroup* g) {
  SetPackedScale(block, part, g);
  TakeBits(block + 48 + 32 * (part / 2), kGroupWeights, 4 * (part % 2), 15, g->q);
  AddBits(block + 16, part, 1, 4, g->q);
}

// Of each half of the block, 64 bytes hold the low four bits: parts 0 and 1 in their low halves,
// parts 2 and 3 in their high halves. 32 bytes hold the high two bits of all four.
inline void LoadQ6K(const uint8_t* block, int part, WeightGroup* g) {
  const float d = F16At(block + 208);
  const int half = part / 4;
  SetScale(0.0f, g);
  for (int h = 0; h < 2; ++h) {
    g->scale[h] = d * static_cast<float>(static_cast<int8_t>(block[192 + 2 * part + h]));
  }
  TakeBits(block + 64 * half + 32 * (part % 2), kGroupWeights, 4 * (part / 2 % 2), 15, g->q);
  AddBits(block + 128 + 32 * half, 2 * (part % 4), 3, 4, g->q);
  Subtract(32, g->q);
}

inline void LoadIq4Xs(const uint8_t* block, int part, WeightGroup* g) {
  const int low = block[4 + part / 2] >> 4 * (part % 2) & 15;
  const int high = static_cast<int>(HalfAt(block + 2) >> 2 * part & 3u);
  SetScale(F16At(block) * static_cast<float>((low | high << 4) - 32), g);
  TakeNibbles(block + 8 + 16 * part, g->q);
  LookUpIq4(g->q);
}

// Parts 0 to 4 are the five digits of the first 32 bytes. The next 16 bytes hold five runs of 16
// values, and the last 4 bytes, with four digits each, the last 16 values.
inline void LoadTq1(const uint8_t* block, int part, WeightGroup* g) {
  static constexpr int kPowers[] = {1, 3, 9, 27, 81};
  SetScale(F16At(block + 52), g);
  if (part < 5) {
    TakeDigits(block, 32, kPowers[part], g->q);
  } else {
    const int digit = 2 * (part - 5);
    TakeDigits(block + 32, 16, kPowers[digit], g->q);
    if (part < 7) {
      TakeDigits(block + 32, 16, kPowers[digit + 1], g->q + 16);
    } else {
      for (int i = 0; i < 4; ++i) TakeDigits(block + 48, 4, kPowers[i], g->q + 16 + 4 * i);
    }
  }
  Subtract(1, g->q);
}

inline void LoadTq2(const uint8_t* block, int part, WeightGroup* g) {
  SetScale(F16At(block + 64), g);
  TakeBits(block + 32 * (part / 4), kGroupWeights, 2 * (part % 4), 3, g->q);
  Subtract(1, g->q);
}

// ---- Rows ------------------------------------------------------------------------------------

using LoadGroupFn = void (*)(const uint8_t* block, int part, WeightGroup* g);

// REQUIRES: `values` fill whole blocks of the type.
template <LoadGroupFn kLoad>
bool DecodeBlocks(uint32_t dtype, const void* row, int64_t values, float* out) {
  const Dtype& info = *FindDtype(dtype);
  const auto* block = static_cast<const uint8_t*>(row);
  const int parts = static_cast<int>(info.block) / kGroupWeights;
  for (int64_t done = 0; done < values; done += info.block, block += info.block_bytes) {
    for (int part = 0; part < parts; ++part, out += kGroupWeights) {
      WeightGroup g;
      kLoad(block, part, &g);
      for (int i = 0; i < kGroupWeights; ++i) {
        out[i] = g.scale[i / 16] * static_cast<float>(g.q[i]) - g.minimum[i / 16];
      }
    }
  }
  return true;
}

// Converts f16 or bf16, 32 values at a time. Goes through arrays of a known length that overlap
// neither side, so that a compiler can vectorise the conversion.
template <float (*kConvert)(uint32_t half)>
bool DecodeHalves(const void* row, int64_t values, float* out) {
  const auto* from = static_cast<const uint8_t*>(row);
  int64_t left = values;
  for (; left >= kGroupWeights; left -= kGroupWeights, out += kGroupWeights) {
    uint16_t halves[kGroupWeights];
    float floats[kGroupWeights];
    std::memcpy(halves, from, sizeof(halves));
    for (int i = 0; i < kGroupWeights; ++i) floats[i] = kConvert(halves[i]);
    std::memcpy(out, floats, sizeof(floats));
    from += sizeof(halves);
  }
  for (int64_t i = 0; i < left; ++i) out[i] = kConvert(HalfAt(from + 2 * i));
  return true;
}

}  // namespace internal

// Decodes the first `values` values of a row, which may begin at any address. To begin later in the
// row, add ValueBytes of the values before, whole blocks. Returns false, and writes nothing, if the
// type is i32 or unknown, or if `values` fill no whole number of blocks.
inline bool DequantizeRow(uint32_t dtype, const void* row, int64_t values, float* out) {
  const int64_t bytes = ValueBytes(dtype, values);
  if (bytes < 0) return false;
  switch (dtype) {
    case TRINE_DTYPE_F32:
      if (bytes != 0) std::memcpy(out, row, static_cast<size_t>(bytes));
      return true;
    case TRINE_DTYPE_F16:
      return internal::DecodeHalves<internal::F16ToFloat>(row, values, out);
    case TRINE_DTYPE_BF16:
      return internal::DecodeHalves<internal::Bf16ToFloat>(row, values, out);
    case TRINE_DTYPE_Q4_0:
      return internal::DecodeBlocks<internal::LoadQ4_0>(dtype, row, values, out);
    case TRINE_DTYPE_Q4_1:
      return internal::DecodeBlocks<internal::LoadQ4_1>(dtype, row, values, out);
    case TRINE_DTYPE_Q5_0:
      return internal::DecodeBlocks<internal::LoadQ5_0>(dtype, row, values, out);
    case TRINE_DTYPE_Q5_1:
      return internal::DecodeBlocks<internal::LoadQ5_1>(dtype, row, values, out);
    case TRINE_DTYPE_Q8_0:
      return internal::DecodeBlocks<internal::LoadQ8_0>(dtype, row, values, out);
    case TRINE_DTYPE_Q8_KV:
      return internal::DecodeBlocks<internal::LoadQ8Kv>(dtype, row, values, out);
    case TRINE_DTYPE_Q2_K:
      return internal::DecodeBlocks<internal::LoadQ2K>(dtype, row, values, out);
    case TRINE_DTYPE_Q3_K:
      return internal::DecodeBlocks<internal::LoadQ3K>(dtype, row, values, out);
    case TRINE_DTYPE_Q4_K:
      return internal::DecodeBlocks<internal::LoadQ4K>(dtype, row, values, out);
    case TRINE_DTYPE_Q5_K:
      return internal::DecodeBlocks<internal::LoadQ5K>(dtype, row, values, out);
    case TRINE_DTYPE_Q6_K:
      return internal::DecodeBlocks<internal::LoadQ6K>(dtype, row, values, out);
    case TRINE_DTYPE_IQ4_NL:
      return internal::DecodeBlocks<internal::LoadIq4Nl>(dtype, row, values, out);
    case TRINE_DTYPE_IQ4_XS:
      return internal::DecodeBlocks<internal::LoadIq4Xs>(dtype, row, values, out);
    case TRINE_DTYPE_TQ1_0:
      return internal::DecodeBlocks<internal::LoadTq1>(dtype, row, values, out);
    case TRINE_DTYPE_TQ2_0:
      return internal::DecodeBlocks<internal::LoadTq2>(dtype, row, values, out);
    case TRINE_DTYPE_MXFP4:
      return internal::DecodeBlocks<internal::LoadMxfp4>(dtype, row, values, out);
    default:
      return false;
  }
}

}  // namespace trine::sdk

#endif  // TRINE_SDK_DEQUANTIZE_H_
