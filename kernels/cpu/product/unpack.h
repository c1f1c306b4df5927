// Unpacks the weight formats, 256 weights of a row at a time, into bytes and vectors of scales.
//
// A chunk is eight blocks of 32 weights; each block has a vector lane. Formats with blocks of 32
// values take eight of these for a chunk, formats with blocks of 256 values one. As in quant::Group
//
//   weight[i] = d * scale[h] * q[i] - dmin * min[h],   h = i / 16
//
// where q = byte - offset. A format's traits say which members of a chunk it sets; no one reads the
// other members. kernels/quant/block_types.h and dequantize.cc explain the layouts.

#pragma once

#include <cstdint>

#include "kernels/cpu/product/format_traits.h"
#include "kernels/cpu/simd/half.h"
#include "kernels/cpu/simd/int8_dot.h"
#include "kernels/cpu/simd/vec.h"
#include "kernels/quant/block_types.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

using quant::Type;

struct Chunk {
  U8x32 q[8];
  F32x8 d, dmin;
  I32x8 scale[2];  // of the first and the last halves; if of whole blocks, only [0] is set
  I32x8 min[2];    // as `scale`
};

constexpr int OffsetOf(FormatTraits traits) {
  return traits.is_signed ? kSignedOffset : traits.offset;
}

// --- Bytes

TRINE_INLINE U8x32 LoadBytes(const uint8_t* from) { return Load<32>(from); }
TRINE_INLINE U8x32 SplatByte(int x) { return Splat<32>(static_cast<uint8_t>(x)); }

template <int N>
TRINE_INLINE Vec<uint8_t, 2 * N> JoinBytes(Vec<uint8_t, N> low, Vec<uint8_t, N> high) {
  if constexpr (Vec<uint8_t, 2 * N>::kIsNative) {
    static_assert(N == 16);
    return {__builtin_shufflevector(low.v, high.v, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                                    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
                                    31)};
  } else {
    return {low, high};
  }
}

TRINE_INLINE U8x32 Field(U8x32 bytes, int shift, int mask) {
  const U8x32 shifted = bytes >> shift;
  return mask == 0xff >> shift ? shifted : shifted & SplatByte(mask);
}

// Returns the nibbles of 16 bytes: all low nibbles, then all high nibbles.
TRINE_INLINE U8x32 Nibbles(const uint8_t* from) {
  const U8x16 bytes = Load<16>(from);
  return JoinBytes(bytes & Splat<16>(uint8_t{15}), bytes >> 4);
}

// Returns 16 in byte i where bit i of four bytes is set, else 0.
TRINE_INLINE U8x32 FifthBits(const uint8_t* from) {
  uint32_t bits;
  __builtin_memcpy(&bits, from, sizeof(bits));
  const U8x16 bytes = {(U8x16::Raw)Splat<4>(bits).v};
  const U8x16 first = {
      __builtin_shufflevector(bytes.v, bytes.v, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1)};
  const U8x16 last = {
      __builtin_shufflevector(bytes.v, bytes.v, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3)};
  const U8x16::Raw mask = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const U8x16 sixteen = Splat<16>(uint8_t{16});
  return JoinBytes(U8x16{(U8x16::Raw)((first.v & mask) == mask) & sixteen.v},
                   U8x16{(U8x16::Raw)((last.v & mask) == mask) & sixteen.v});
}

TRINE_INLINE U8x32 FromSigned(U8x32 q) {
  return kSignedOffset == 0 ? q : q ^ SplatByte(kSignedOffset);
}

// Returns group `part` of two-bit values. Each 32 bytes hold four groups, the first in the low
// bits.
TRINE_INLINE U8x32 TwoBits(const uint8_t* q, int part) {
  return Field(LoadBytes(q + 32 * (part / 4)), 2 * (part % 4), 3);
}

// Returns group `part` of four-bit values. Each 32 bytes hold two groups, the first in the low
// halves.
TRINE_INLINE U8x32 FourBits(const uint8_t* q, int part) {
  return Field(LoadBytes(q + 32 * (part / 2)), 4 * (part % 2), 15);
}

// --- Scales

typedef uint16_t U16x8 __attribute__((vector_size(16)));

TRINE_INLINE F32x8 FromF16(U16x8 halves) {
  return LoadF16<8>(reinterpret_cast<const uint16_t*>(&halves));
}

TRINE_INLINE F32x8 SplatF16(uint16_t half) {
  const U16x8 halves = half - U16x8{};
  const F32x4 four = LoadF16<4>(reinterpret_cast<const uint16_t*>(&halves));
  return Join(four, four);
}

template <typename Block>
TRINE_INLINE F32x8 ScalesOf(const Block* b) {
  return FromF16(U16x8{b[0].d, b[1].d, b[2].d, b[3].d, b[4].d, b[5].d, b[6].d, b[7].d});
}

template <typename Block>
TRINE_INLINE F32x8 AddedMinimumsOf(const Block* b) {
  return FromF16(U16x8{b[0].m, b[1].m, b[2].m, b[3].m, b[4].m, b[5].m, b[6].m, b[7].m});
}

TRINE_INLINE uint32_t Word(const uint8_t* from) {
  uint32_t word;
  __builtin_memcpy(&word, from, sizeof(word));
  return word;
}

TRINE_INLINE uint64_t DoubleWord(const void* from) {
  uint64_t word;
  __builtin_memcpy(&word, from, sizeof(word));
  return word;
}

TRINE_INLINE uint64_t Both(uint32_t low, uint32_t high) {
  return low | static_cast<uint64_t>(high) << 32;
}

// Returns a field of each lane's bits. A lane has two bytes, one for each half of a block.
TRINE_INLINE I32x8 UnsignedField(U32x8 x, int shift, uint32_t mask) {
  return BitCast<int32_t>((x >> shift) & Splat<8>(mask));
}

// Unpacks the eight scales and eight minimums of Q4_K and Q5_K, six bits each.
TRINE_INLINE void UnpackScalesAndMins(const uint8_t* scales, Chunk* out) {
  const uint32_t a = Word(scales), b = Word(scales + 4), c = Word(scales + 8);
  constexpr uint32_t kSix = 0x3f3f3f3f, kFour = 0x0f0f0f0f, kTop = 0x30303030;
  out->scale[0] = WidenBytes(Both(a & kSix, (c & kFour) | ((a >> 2) & kTop)));
  out->min[0] = WidenBytes(Both(b & kSix, ((c >> 4) & kFour) | ((b >> 2) & kTop)));
}

// Spread eight fields of four bits, or of two, over the bytes of the result.
TRINE_INLINE uint64_t SpreadFours(uint64_t x) {
  x = (x | x << 16) & 0x0000ffff0000ffffu;
  x = (x | x << 8) & 0x00ff00ff00ff00ffu;
  return (x | x << 4) & 0x0f0f0f0f0f0f0f0fu;
}
TRINE_INLINE uint64_t SpreadTwos(uint64_t x) {
  x = (x | x << 24) & 0x000000ff000000ffu;
  x = (x | x << 12) & 0x000f000f000f000fu;
  return (x | x << 6) & 0x0303030303030303u;
}

// --- Formats of 32-value blocks

// Unpack reads the blocks of one chunk.
template <Type kType>
struct Format;

template <typename BlockOf, int kValues>
struct FormatOf {
  using Block = BlockOf;
  static constexpr int kBlockValues = kValues;
};

// Q4_0, Q4_1, Q5_0 and Q5_1.
template <typename Block, int kOffset>
struct NibbleFormat : FormatOf<Block, quant::kGroupValues> {
  static constexpr bool kHasFifthBits = requires(Block block) { block.fifth_bits; };
  static constexpr bool kHasMinimum = requires(Block block) { block.m; };
  static constexpr FormatTraits kTraits = {
      .minimums = kHasMinimum ? Minimums::kAdded : Minimums::kNone, .offset = kOffset};
  TRINE_INLINE void Unpack(const Block* blocks, Chunk* out) {
    TRINE_UNROLL
    for (int b = 0; b < 8; ++b) {
      out->q[b] = Nibbles(blocks[b].nibbles);
      if constexpr (kHasFifthBits) out->q[b] = out->q[b] | FifthBits(blocks[b].fifth_bits);
    }
    out->d = ScalesOf(blocks);
    if constexpr (kHasMinimum) out->dmin = AddedMinimumsOf(blocks);
  }
};
template <>
struct Format<Type::kQ4_0> : NibbleFormat<quant::BlockQ4_0, 8> {};
template <>
struct Format<Type::kQ4_1> : NibbleFormat<quant::BlockQ4_1, 0> {};
template <>
struct Format<Type::kQ5_0> : NibbleFormat<quant::BlockQ5_0, 16> {};
template <>
struct Format<Type::kQ5_1> : NibbleFormat<quant::BlockQ5_1, 0> {};

template <>
struct Format<Type::kQ8_0> : FormatOf<quant::BlockQ8_0, quant::kGroupValues> {
  static constexpr FormatTraits kTraits = {.is_signed = true};
  TRINE_INLINE void Unpack(const Block* blocks, Chunk* out) {
    TRINE_UNROLL
    for (int b = 0; b < 8; ++b) {
      out->q[b] = FromSigned(LoadBytes(reinterpret_cast<const uint8_t*>(blocks[b].q)));
    }
    out->d = ScalesOf(blocks);
  }
};

// quant::kIq4Values, as bytes.
constexpr uint8_t kIq4Bytes[16] = {129, 152, 173, 191, 207, 221, 234, 246,
                                   1,   13,  25,  38,  53,  69,  89,  113};

template <>
struct Format<Type::kIQ4_NL> : FormatOf<quant::BlockIQ4_NL, quant::kGroupValues> {
  static constexpr FormatTraits kTraits = {.is_signed = true};
  TRINE_INLINE void Unpack(const Block* blocks, Chunk* out) {
    TRINE_UNROLL
    for (int b = 0; b < 8; ++b) {
      out->q[b] = FromSigned(Lookup(kIq4Bytes, Indices(blocks, b)));
    }
    out->d = ScalesOf(blocks);
  }
  TRINE_INLINE U8x32 Indices(const Block* blocks, int b) { return Nibbles(blocks[b].nibbles); }
};

// quant::kMxfp4Values plus the offset of 12.
constexpr uint8_t kMxfp4Bytes[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

template <>
struct Format<Type::kMXFP4> : FormatOf<quant::BlockMXFP4, quant::kGroupValues> {
  static constexpr FormatTraits kTraits = {.offset = 12};
  TRINE_INLINE void Unpack(const Block* blocks, Chunk* out) {
    uint64_t exponents = 0;
    TRINE_UNROLL
    for (int b = 0; b < 8; ++b) {
      out->q[b] = Lookup(kMxfp4Bytes, Indices(blocks, b));
      exponents |= static_cast<uint64_t>(blocks[b].e) << (8 * b);
    }
    // 2^(e - 128) has the biased exponent e - 1.
    const I32x8 least = Splat<8>(128 + quant::kMxfp4MinExponent);
    const I32x8 most = Splat<8>(128 + quant::kMxfp4MaxExponent);
    const I32x8 e = Max(Min(WidenBytes(exponents), most), least);
    out->d = BitCast<float>((e - Splat<8>(1)) << 23);
  }
  TRINE_INLINE U8x32 Indices(const Block* blocks, int b) { return Nibbles(blocks[b].nibbles); }
};

// --- Formats of 256-value blocks

template <>
struct Format<Type::kQ2_K> : FormatOf<quant::BlockQ2_K, quant::kSuperValues> {
  static constexpr FormatTraits kTraits = {.scales = Scales::kHalf, .minimums = Minimums::kHalf};
  TRINE_INLINE void Unpack(const Block* block, Chunk* out) {
    TRINE_UNROLL
    for (int b = 0; b < 8; ++b) out->q[b] = TwoBits(block->q, b);
    const U32x8 pairs = WidenWords(DoubleWord(block->scales), DoubleWord(block->scales + 8));
    TRINE_UNROLL
    for (int h = 0; h < 2; ++h) {
      out->scale[h] = UnsignedField(pairs, 8 * h, 15);
      out->min[h] = UnsignedField(pairs, 8 * h + 4, 15);
    }
    out->d = SplatF16(block->d);
    out->dmin = SplatF16(block->dmin);
  }
};

template <>
struct Format<Type::kQ3_K> : FormatOf<quant::BlockQ3_K, quant::kSuperValues> {
  static constexpr FormatTraits kTraits = {.scales = Scales::kHalf, .offset = 4};
  TRINE_INLINE void Unpack(const Block* block, Chunk* out) {
    const U8x32 third_bits = LoadBytes(block->third_bits);
    TRINE_UNROLL
    for (int b = 0; b < 8; ++b) {
      out->q[b] = TwoBits(block->q, b) | (Field(third_bits, b, 1) << 2);
    }
    const uint64_t low = DoubleWord(block->scales);
    const uint32_t high = Word(block->scales + 8);
    constexpr uint64_t kFour = 0x0f0f0f0f0f0f0f0fu;
    constexpr uint32_t kTop = 0x30303030;
    const uint64_t first8 = (low & kFour) | Both((high << 4) & kTop, (high << 2) & kTop);
    const uint64_t last8 = ((low >> 4) & kFour) | Both(high & kTop, (high >> 2) & kTop);
    const U32x8 pairs = WidenWords(first8, last8);
    TRINE_UNROLL
    for (int h = 0; h < 2; ++h) {
      out->scale[h] = UnsignedField(pairs, 8 * h, 63) - Splat<8>(32);
    }
    out->d = SplatF16(block->d);
  }
};

// Q4_K and Q5_K.
template <typename Block>
struct FourBitFormat : FormatOf<Block, quant::kSuperValues> {
  static constexpr bool kHasFifthBits = requires(Block block) { block.fifth_bits; };
  static constexpr FormatTraits kTraits = {.scales = Scales::kBlock, .minimums = Minimums::kBlock};
  TRINE_INLINE void Unpack(const Block* block, Chunk* out) {
    [[maybe_unused]] U8x32 fifth_bits;
    if constexpr (kHasFifthBits) fifth_bits = LoadBytes(block->fifth_bits);
    TRINE_UNROLL
    for (int b = 0; b < 8; ++b) {
      out->q[b] = FourBits(block->q, b);
      if constexpr (kHasFifthBits) out->q[b] = out->q[b] | (Field(fifth_bits, b, 1) << 4);
    }
    UnpackScalesAndMins(block->scales, out);
    out->d = SplatF16(block->d);
    out->dmin = SplatF16(block->dmin);
  }
};
template <>
struct Format<Type::kQ4_K> : FourBitFormat<quant::BlockQ4_K> {};
template <>
struct Format<Type::kQ5_K> : FourBitFormat<quant::BlockQ5_K> {};

template <>
struct Format<Type::kQ6_K> : FormatOf<quant::BlockQ6_K, quant::kSuperValues> {
  static constexpr FormatTraits kTraits = {.scales = Scales::kHalf, .offset = 32};
  TRINE_INLINE void Unpack(const Block* block, Chunk* out) {
    TRINE_UNROLL
    for (int b = 0; b < 8; ++b) {
      const U8x32 low = LoadBytes(block->low + 64 * (b / 4) + 32 * (b % 2));
      out->q[b] = Field(low, 4 * (b % 4 / 2), 15) | (TwoBits(block->high, b) << 4);
    }
    const U32x8 words = WidenWords(DoubleWord(block->scales), DoubleWord(block->scales + 8));
    const I32x8 pairs = BitCast<int32_t>(words);
    out->scale[0] = (pairs << 24) >> 24;
    out->scale[1] = (pairs << 16) >> 24;
    out->d = SplatF16(block->d);
  }
};

template <>
struct Format<Type::kIQ4_XS> : FormatOf<quant::BlockIQ4_XS, quant::kSuperValues> {
  static constexpr FormatTraits kTraits = {.scales = Scales::kBlock, .is_signed = true};
  TRINE_INLINE void Unpack(const Block* block, Chunk* out) {
    TRINE_UNROLL
    for (int b = 0; b < 8; ++b) {
      out->q[b] = FromSigned(Lookup(kIq4Bytes, Indices(block, b)));
    }
    const uint64_t scales = SpreadFours(Word(block->scales_low)) | SpreadTwos(block->scales_high)
                                                                       << 4;
    out->scale[0] = WidenBytes(scales) - Splat<8>(32);
    out->d = SplatF16(block->d);
  }
  TRINE_INLINE U8x32 Indices(const Block* block, int b) { return Nibbles(block->q + 16 * b); }
};

// Returns the base-3 digit that a byte times three carries out: 0 up to 85, 1 up to 170, else 2.
TRINE_INLINE U8x16 TopDigit(U8x16 x) {
  const U8x16::Raw at_least_1 = (U8x16::Raw)(x.v > Splat<16>(uint8_t{85}).v);
  const U8x16::Raw at_least_2 = (U8x16::Raw)(x.v > Splat<16>(uint8_t{170}).v);
  return {U8x16::Raw{} - at_least_1 - at_least_2};
}

template <>
struct Format<Type::kTQ1_0> : FormatOf<quant::BlockTQ1_0, quant::kSuperValues> {
  static constexpr FormatTraits kTraits = {.offset = 1};
  TRINE_INLINE void Unpack(const Block* block, Chunk* out) {
    // Multiplying by 3, modulo 256, drops the top digit. The last four bytes hold four digits each:
    // their 16 values follow the 80 of bytes 32 to 47.
    const U8x16 three = Splat<16>(uint8_t{3});
    U8x16 a = Load<16>(block->five), b = Load<16>(block->five + 16);
    U8x16 c = Load<16>(block->five + 32), tail[6];
    TRINE_UNROLL
    for (int digit = 0; digit < 5; ++digit) {
      out->q[digit] = JoinBytes(TopDigit(a), TopDigit(b));
      tail[digit] = TopDigit(c);
      a = a * three;
      b = b * three;
      c = c * three;
    }
    const U8x16::Raw powers = {1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27};
    const U8x16 four = {(U8x16::Raw)Splat<4>(Word(block->four)).v * powers};
    tail[5] = TopDigit(four);
    TRINE_UNROLL
    for (int i = 0; i < 3; ++i) out->q[5 + i] = JoinBytes(tail[2 * i], tail[2 * i + 1]);
    out->d = SplatF16(block->d);
  }
};

template <>
struct Format<Type::kTQ2_0> : FormatOf<quant::BlockTQ2_0, quant::kSuperValues> {
  static constexpr FormatTraits kTraits = {.offset = 1};
  TRINE_INLINE void Unpack(const Block* block, Chunk* out) {
    TRINE_UNROLL
    for (int b = 0; b < 8; ++b) out->q[b] = TwoBits(block->q, b);
    out->d = SplatF16(block->d);
  }
};

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
