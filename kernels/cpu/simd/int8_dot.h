// Sums of products of bytes, with the instructions that a level has for them.
//
// Weights are bytes, activations are signed bytes of at most 127 in magnitude. Weights of unsigned
// formats are at most 63. Weights of signed formats are stored as they are, -128 included. If the
// processor multiplies only unsigned by signed bytes (VNNI), 128 is added to each of these weights,
// and subtracted again by means of the activations' sums (kSignedOffset). Sums are exact.
//
// There are two shapes. For one row, the eight blocks of a chunk lie side by side in the lanes of a
// vector (BlockDots, or HalfDots if the halves of a block have their own scales). For a tile, the
// rows lie side by side (Dot16). If one instruction multiplies pairs of rows with pairs of columns
// (kPairs), a tile's bytes lie in the order of that instruction (OrderQuads).

#pragma once

#include <cstdint>

#include "kernels/cpu/simd/amx.h"
#include "kernels/cpu/simd/vec.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Stands before a loop of constant length whose body needs its index as a constant.
#if defined(__clang__)
#define TRINE_UNROLL _Pragma("unroll")
#define TRINE_NO_UNROLL _Pragma("nounroll")
#else
#define TRINE_UNROLL _Pragma("GCC unroll 8")
#define TRINE_NO_UNROLL _Pragma("GCC unroll 1")
#endif

// Stands before a function with a loop that needs about as many registers as there are. Of GCC's
// instruction orders, the one for Neoverse N1 spills the least, on whatever processor it runs.
#if defined(__aarch64__) && !defined(__clang__)
#define TRINE_FEW_SPILLS [[gnu::target("tune=neoverse-n1"), gnu::noinline]]
#else
#define TRINE_FEW_SPILLS
#endif

using U8x16 = Vec<uint8_t, 16>;
using U8x32 = Vec<uint8_t, 32>;

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
constexpr int kSignedOffset = 128;
#else
constexpr int kSignedOffset = 0;
#endif

// The rows of a tile, or of a group of packed weights.
constexpr int kTileRows = kNativeLanes == 16 || TRINE_HAS_AMX ? 16 : 8;
using TileFloats = F32<kTileRows>;

// A slice: the rows whose sums one register holds.
constexpr int kSliceRows = kNativeLanes;
constexpr int kSlices = kTileRows / kSliceRows;
using SliceBytes = Vec<uint8_t, 4 * kSliceRows>;  // four weights of each row
using SliceInts = I32<kSliceRows>;
using SliceFloats = F32<kSliceRows>;

// true: one instruction multiplies two rows with two columns, of eight values each.
#if defined(__ARM_FEATURE_MATMUL_INT8)
constexpr bool kPairs = true;
#else
constexpr bool kPairs = false;
#endif
// A cell: the rows and columns whose sums one register holds, in products of many columns.
constexpr int kCellColumns = kPairs ? 2 : 1;
constexpr int kCellRows = kSliceRows / kCellColumns;

// Sums of products begin at kSumBits (vec.h). No block's sum is too large for that: it is at most
// 32 * 128 * 127, or three times that before an offset of 128 is subtracted.

// true: the sums of a block's halves are scaled and added as integers before they become a float,
// which is exact below 2^24. That takes fewer instructions if 32-bit products cost no more than
// others, as on Neoverse V1.
#if defined(__ARM_FEATURE_MATMUL_INT8)
constexpr bool kScaleHalvesAsIntegers = true;
#else
constexpr bool kScaleHalvesAsIntegers = false;
#endif

// The layout of packed weights: the rows of a group, whether signed bytes are offset, and a
// version, which changes with packed_format.h. Levels with kPairs (pairs, triples) have their own.
constexpr uint32_t kPairsVersion = 3;
constexpr uint32_t kPacking =
    (kTileRows << 16) | (kSignedOffset << 8) | (kPairs ? kPairsVersion << 4 : 0) | 1;

// The sums of each block's first 16 products, and of its last 16; block i has lane i.
struct HalfSums {
  I32x8 first, last;
};

#if defined(__AVX2__)

TRINE_INLINE __m256i Load32(const int8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// Returns acc plus the products of each four bytes.
template <bool kSigned>
TRINE_INLINE __m256i DotFours(__m256i acc, __m256i w, __m256i a) {
#if defined(__AVX512VNNI__)
  return _mm256_dpbusd_epi32(acc, w, a);
#elif defined(__AVXVNNI__)
  return _mm256_dpbusd_avx_epi32(acc, w, a);
#else
  // A pair of products is at most 2 * 128 * 127, which 16 bits hold: abs(-128) is 128 as a byte
  // without sign, and a is never -128.
  const __m256i pairs = kSigned ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w))
                                : _mm256_maddubs_epi16(w, a);
  return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
#endif
}

template <bool kSigned>
TRINE_INLINE HalfSums HalfDots(const U8x32 (&w)[8], const int8_t* a) {
  __m256i fours[8];
  TRINE_UNROLL
  for (int b = 0; b < 8; ++b) {
    fours[b] = DotFours<kSigned>(_mm256_setzero_si256(), (__m256i)w[b].v, Load32(a + 32 * b));
  }
  // Each half register holds one half block: four blocks' first halves, then their last.
  const __m256i b01 = _mm256_hadd_epi32(fours[0], fours[1]);
  const __m256i b23 = _mm256_hadd_epi32(fours[2], fours[3]);
  const __m256i b45 = _mm256_hadd_epi32(fours[4], fours[5]);
  const __m256i b67 = _mm256_hadd_epi32(fours[6], fours[7]);
  const __m256i b0123 = _mm256_hadd_epi32(b01, b23);
  const __m256i b4567 = _mm256_hadd_epi32(b45, b67);
  return {{(I32x8::Raw)_mm256_permute2x128_si256(b0123, b4567, 0x20)},
          {(I32x8::Raw)_mm256_permute2x128_si256(b0123, b4567, 0x31)}};
}

// Returns the sum of each block's 32 products in lanes 0-7.
template <bool kSigned>
TRINE_INLINE I32x8 BlockDots(const U8x32 (&w)[8], const int8_t* a) {
  const HalfSums sums = HalfDots<kSigned>(w, a);
  return sums.first + sums.last;
}

// Adds to each row's lane the products of its 16 weights, four to a vector, with 16 activations.
template <bool kSigned>
TRINE_INLINE void Dot16(const SliceBytes (&w)[4], const int8_t* a, SliceInts* acc) {
  TRINE_UNROLL
  for (int i = 0; i < 4; ++i) {
    int32_t four;
    __builtin_memcpy(&four, a + 4 * i, sizeof(four));
#if defined(__AVX512VNNI__)
    const __m512i sum =
        _mm512_dpbusd_epi32((__m512i)acc->v, (__m512i)w[i].v, _mm512_set1_epi32(four));
#else
    const __m256i sum =
        DotFours<kSigned>((__m256i)acc->v, (__m256i)w[i].v, _mm256_set1_epi32(four));
#endif
    acc->v = (SliceInts::Raw)sum;
  }
}

// Returns table[i] for each nibble i.
TRINE_INLINE U8x32 Lookup(const uint8_t (&table)[16], U8x32 nibbles) {
  const __m256i entries =
      _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  return {(U8x32::Raw)_mm256_shuffle_epi8(entries, (__m256i)nibbles.v)};
}

#else  // registers of 16 bytes

#if defined(__x86_64__)

using FourInts = __m128i;

TRINE_INLINE FourInts ZeroInts() { return _mm_setzero_si128(); }
TRINE_INLINE FourInts AddPairs(FourInts a, FourInts b) { return _mm_hadd_epi32(a, b); }
TRINE_INLINE I32x4 ToVec(FourInts x) { return {(I32x4::Raw)x}; }

// Returns acc plus the products of each four bytes. As for AVX2 above, 16 bits hold a pair.
template <bool kSigned>
TRINE_INLINE FourInts DotFours(FourInts acc, FourInts w, FourInts a) {
  const FourInts pairs =
      kSigned ? _mm_maddubs_epi16(_mm_abs_epi8(w), _mm_sign_epi8(a, w)) : _mm_maddubs_epi16(w, a);
  return _mm_add_epi32(acc, _mm_madd_epi16(pairs, _mm_set1_epi16(1)));
}

template <bool kSigned>
TRINE_INLINE FourInts DotHalfBlock(FourInts acc, U8x16 w, const int8_t* a) {
  return DotFours<kSigned>(acc, (__m128i)w.v, _mm_loadu_si128(reinterpret_cast<const __m128i*>(a)));
}

template <bool kSigned>
TRINE_INLINE void Dot16(const SliceBytes (&w)[4], const int8_t* a, SliceInts* acc) {
  TRINE_UNROLL
  for (int i = 0; i < 4; ++i) {
    int32_t four;
    __builtin_memcpy(&four, a + 4 * i, sizeof(four));
    acc->v =
        (I32x4::Raw)DotFours<kSigned>((FourInts)acc->v, (FourInts)w[i].v, _mm_set1_epi32(four));
  }
}

TRINE_INLINE U8x16 Lookup16(const uint8_t* table, U8x16 nibbles) {
  const __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return {(U8x16::Raw)_mm_shuffle_epi8(entries, (__m128i)nibbles.v)};
}

#else  // AArch64 multiplies signed bytes, which 0 to 63 are too

using FourInts = int32x4_t;

TRINE_INLINE FourInts ZeroInts() { return vdupq_n_s32(0); }
TRINE_INLINE FourInts AddPairs(FourInts a, FourInts b) { return vpaddq_s32(a, b); }
TRINE_INLINE I32x4 ToVec(FourInts x) { return {x}; }
TRINE_INLINE int8x16_t AsSigned(U8x16 x) { return vreinterpretq_s8_u8((uint8x16_t)x.v); }

#if defined(__ARM_FEATURE_DOTPROD)

template <bool kSigned>
TRINE_INLINE FourInts DotHalfBlock(FourInts acc, U8x16 w, const int8_t* a) {
  return vdotq_s32(acc, AsSigned(w), vld1q_s8(a));
}

#if defined(__ARM_FEATURE_MATMUL_INT8)

// Multiplies two rows with two columns, eight values of each: row 0 with both columns, then row 1.
TRINE_INLINE void DotPairs(U8x16 w, const int8_t* a, SliceInts* acc) {
  acc->v = vmmlaq_s32(acc->v, AsSigned(w), vld1q_s8(a));
}

#endif  // __ARM_FEATURE_MATMUL_INT8

template <bool kSigned>
TRINE_INLINE void Dot16(const SliceBytes (&w)[4], const int8_t* from, SliceInts* acc) {
  const int8x16_t a = vld1q_s8(from);
  acc->v = vdotq_laneq_s32(acc->v, AsSigned(w[0]), a, 0);
  acc->v = vdotq_laneq_s32(acc->v, AsSigned(w[1]), a, 1);
  acc->v = vdotq_laneq_s32(acc->v, AsSigned(w[2]), a, 2);
  acc->v = vdotq_laneq_s32(acc->v, AsSigned(w[3]), a, 3);
}

#else

// A pair of products is at most 2 * 128 * 127, which 16 bits hold.
TRINE_INLINE int16x8_t PairsOfProducts(int8x8_t w0, int8x8_t a0, int8x8_t w1, int8x8_t a1) {
  return vmlal_s8(vmull_s8(w0, a0), w1, a1);
}

template <bool kSigned>
TRINE_INLINE FourInts DotHalfBlock(FourInts acc, U8x16 w, const int8_t* from) {
  const int8x16_t a = vld1q_s8(from);
  return vpadalq_s16(acc, PairsOfProducts(vget_low_s8(AsSigned(w)), vget_low_s8(a),
                                          vget_high_s8(AsSigned(w)), vget_high_s8(a)));
}

// Multiplies four rows with eight activations: w0 with the first four, w1 with the last.
TRINE_INLINE int32x4_t DotEight(int32x4_t acc, int8x16_t w0, int8x8_t a0, int8x16_t w1,
                                int8x8_t a1) {
  const int16x8_t rows01 = PairsOfProducts(vget_low_s8(w0), a0, vget_low_s8(w1), a1);
  const int16x8_t rows23 = PairsOfProducts(vget_high_s8(w0), a0, vget_high_s8(w1), a1);
  return vaddq_s32(acc, vpaddq_s32(vpaddlq_s16(rows01), vpaddlq_s16(rows23)));
}

template <bool kSigned>
TRINE_INLINE void Dot16(const SliceBytes (&w)[4], const int8_t* from, SliceInts* acc) {
  const int32x4_t a = vreinterpretq_s32_s8(vld1q_s8(from));
  const int8x8_t fours[4] = {
      vreinterpret_s8_s32(vdup_laneq_s32(a, 0)), vreinterpret_s8_s32(vdup_laneq_s32(a, 1)),
      vreinterpret_s8_s32(vdup_laneq_s32(a, 2)), vreinterpret_s8_s32(vdup_laneq_s32(a, 3))};
  TRINE_UNROLL
  for (int i = 0; i < 4; i += 2) {
    acc->v = DotEight(acc->v, AsSigned(w[i]), fours[i], AsSigned(w[i + 1]), fours[i + 1]);
  }
}

#endif  // __ARM_FEATURE_DOTPROD

TRINE_INLINE U8x16 Lookup16(const uint8_t* table, U8x16 nibbles) {
  return {(U8x16::Raw)vqtbl1q_u8(vld1q_u8(table), (uint8x16_t)nibbles.v)};
}

#endif  // x86-64 or AArch64

TRINE_INLINE I32x4 JoinFours(FourInts a, FourInts b, FourInts c, FourInts d) {
  return ToVec(AddPairs(AddPairs(a, b), AddPairs(c, d)));
}

template <bool kSigned>
TRINE_INLINE HalfSums HalfDots(const U8x32 (&w)[8], const int8_t* a) {
  FourInts first[8], last[8];
  TRINE_UNROLL
  for (int b = 0; b < 8; ++b) {
    first[b] = DotHalfBlock<kSigned>(ZeroInts(), w[b].lo, a + 32 * b);
    last[b] = DotHalfBlock<kSigned>(ZeroInts(), w[b].hi, a + 32 * b + 16);
  }
  return {{JoinFours(first[0], first[1], first[2], first[3]),
           JoinFours(first[4], first[5], first[6], first[7])},
          {JoinFours(last[0], last[1], last[2], last[3]),
           JoinFours(last[4], last[5], last[6], last[7])}};
}

template <bool kSigned>
TRINE_INLINE I32x8 BlockDots(const U8x32 (&w)[8], const int8_t* a) {
  FourInts block[8];
  TRINE_UNROLL
  for (int b = 0; b < 8; ++b) {
    block[b] = DotHalfBlock<kSigned>(ZeroInts(), w[b].lo, a + 32 * b);
    block[b] = DotHalfBlock<kSigned>(block[b], w[b].hi, a + 32 * b + 16);
  }
  return {JoinFours(block[0], block[1], block[2], block[3]),
          JoinFours(block[4], block[5], block[6], block[7])};
}

TRINE_INLINE U8x32 Lookup(const uint8_t (&table)[16], U8x32 nibbles) {
  return {Lookup16(table, nibbles.lo), Lookup16(table, nibbles.hi)};
}

#endif  // registers of 32 or 16 bytes

// The growing sums of a slice's rows. Add adds the products of each row's 16 weights, in quads or
// in pairs (OrderQuads), with 16 activations.
template <bool kInPairs>
struct SliceDots {
  SliceInts sums;

  TRINE_INLINE SliceDots Start(int32_t start) { return {Splat<kSliceRows>(start)}; }
  template <bool kSigned>
  TRINE_INLINE void Add(const SliceBytes (&w)[4], const int8_t* a, SliceDots* to) {
    Dot16<kSigned>(w, a, &to->sums);
  }
  TRINE_INLINE SliceInts Sums(const SliceDots& dots) { return dots.sums; }
};

#if defined(__ARM_FEATURE_MATMUL_INT8)

template <>
struct SliceDots<true> {
  int32x4_t first, last;  // of two rows each, every sum twice

  TRINE_INLINE SliceDots Start(int32_t start) { return {vdupq_n_s32(start), vdupq_n_s32(start)}; }
  template <bool kSigned>
  TRINE_INLINE void Add(const SliceBytes (&w)[4], const int8_t* a, SliceDots* to) {
    TRINE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int8x8_t eight = vld1_s8(a + 8 * i);
      const int8x16_t twice = vcombine_s8(eight, eight);
      to->first = vmmlaq_s32(to->first, AsSigned(w[2 * i]), twice);
      to->last = vmmlaq_s32(to->last, AsSigned(w[2 * i + 1]), twice);
    }
  }
  TRINE_INLINE SliceInts Sums(const SliceDots& dots) { return {vuzp1q_s32(dots.first, dots.last)}; }
};

#endif

// Puts half a block of a slice in pairs. It comes as four quads, each with four values of every
// row. In pairs, the first eight values of rows 0 and 1 come first, then those of rows 2 and 3,
// then the last eight values.
TRINE_INLINE void OrderQuads(SliceBytes (&w)[4]) {
#if defined(__ARM_FEATURE_MATMUL_INT8)
  for (int i = 0; i < 4; i += 2) {
    const auto a = (uint32x4_t)w[i].v, b = (uint32x4_t)w[i + 1].v;
    w[i].v = (SliceBytes::Raw)vzip1q_u32(a, b);
    w[i + 1].v = (SliceBytes::Raw)vzip2q_u32(a, b);
  }
#else
  (void)w;
#endif
}

// Puts the bytes of rows [begin, end) of a block in pairs.
TRINE_INLINE void OrderRows(int begin, int end, uint8_t (*q)[4 * kTileRows]) {
  for (int row = begin; row < end; row += kSliceRows) {
    for (int h = 0; h < 2; ++h) {
      SliceBytes w[4];
      for (int i = 0; i < 4; ++i) w[i] = Load<4 * kSliceRows>(&q[4 * h + i][4 * row]);
      OrderQuads(w);
      for (int i = 0; i < 4; ++i) Store(w[i], &q[4 * h + i][4 * row]);
    }
  }
}

// The place of a value in half a block of a slice, in quads or in pairs.
struct QuadPlace {
  int vector, byte;
};
template <bool kInPairs>
TRINE_INLINE QuadPlace PlaceOf(int row, int i) {
  if constexpr (kInPairs) return {i / 8 * 2 + row / 2, row % 2 * 8 + i % 8};
  return {i / 4, 4 * row + i % 4};
}

// --- Small integers from general registers, the lowest first

#if defined(__x86_64__)

TRINE_INLINE U32x8 WidenWords(uint64_t low, uint64_t high) {
  const __m128i words = _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
#if defined(__AVX2__)
  return {(U32x8::Raw)_mm256_cvtepu16_epi32(words)};
#else
  return {{(U32x4::Raw)_mm_cvtepu16_epi32(words)},
          {(U32x4::Raw)_mm_cvtepu16_epi32(_mm_srli_si128(words, 8))}};
#endif
}

TRINE_INLINE I32x8 WidenBytes(uint64_t eight) {
  const __m128i bytes = _mm_cvtsi64_si128(static_cast<int64_t>(eight));
#if defined(__AVX2__)
  return {(I32x8::Raw)_mm256_cvtepu8_epi32(bytes)};
#else
  return {{(I32x4::Raw)_mm_cvtepu8_epi32(bytes)},
          {(I32x4::Raw)_mm_cvtepu8_epi32(_mm_srli_si128(bytes, 4))}};
#endif
}

#else

TRINE_INLINE U32x8 WidenWords(uint64_t low, uint64_t high) {
  return {{vmovl_u16(vcreate_u16(low))}, {vmovl_u16(vcreate_u16(high))}};
}

TRINE_INLINE I32x8 WidenBytes(uint64_t eight) {
  const uint16x8_t words = vmovl_u8(vcreate_u8(eight));
  return {{vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(words)))},
          {vreinterpretq_s32_u32(vmovl_u16(vget_high_u16(words)))}};
}

#endif

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
