// Loads and stores f16, bf16 and signed bytes as vectors of f32.
//
// The conversion instructions of F16C and AArch64 are exact, round to nearest even and heed no
// flush-to-zero mode where a result is an f16. Levels without them do the same with integers.

#pragma once

#include <cstdint>

#include "kernels/cpu/simd/vec.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Widen bytes and halves into one register, or into the registers that one load fills, per
// instruction set. (The masked forms are used where GCC 12 warns about the unmasked forms'
// headers.)

#if defined(__x86_64__)

constexpr int kWidenedBytes = kNativeLanes;

TRINE_INLINE I32x4 WidenBytes(const int8_t* from, I32x4) {
  int32_t four;
  __builtin_memcpy(&four, from, sizeof(four));
  return {(I32x4::Raw)_mm_cvtepi8_epi32(_mm_cvtsi32_si128(four))};
}
TRINE_INLINE U32x4 WidenHalves(const uint16_t* from, U32x4) {
  return {(U32x4::Raw)_mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)))};
}
#if defined(__AVX2__)
TRINE_INLINE I32x8 WidenBytes(const int8_t* from, I32x8) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return {(I32x8::Raw)_mm256_cvtepi8_epi32(bytes)};
}
TRINE_INLINE U32x8 WidenHalves(const uint16_t* from, U32x8) {
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return {(U32x8::Raw)_mm256_cvtepu16_epi32(halves)};
}
#endif
#if defined(__AVX512F__)
TRINE_INLINE I32x16 WidenBytes(const int8_t* from, I32x16) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return {(I32x16::Raw)_mm512_maskz_cvtepi8_epi32(0xffff, bytes)};
}
TRINE_INLINE U32x16 WidenHalves(const uint16_t* from, U32x16) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return {(U32x16::Raw)_mm512_maskz_cvtepu16_epi32(0xffff, halves)};
}
#endif

#elif defined(__aarch64__)

constexpr int kWidenedBytes = 16;

TRINE_INLINE I32x16 WidenBytes(const int8_t* from, I32x16) {
  const int8x16_t bytes = vld1q_s8(from);
  const int16x8_t low = vmovl_s8(vget_low_s8(bytes));
  const int16x8_t high = vmovl_high_s8(bytes);
  return {{{vmovl_s16(vget_low_s16(low))}, {vmovl_high_s16(low)}},
          {{vmovl_s16(vget_low_s16(high))}, {vmovl_high_s16(high)}}};
}
TRINE_INLINE I32x4 WidenBytes(const int8_t* from, I32x4) {
  uint32_t four;
  __builtin_memcpy(&four, from, sizeof(four));
  const int8x8_t bytes = vreinterpret_s8_u32(vdup_n_u32(four));
  return {vmovl_s16(vget_low_s16(vmovl_s8(bytes)))};
}
TRINE_INLINE I32x8 WidenBytes(const int8_t* from, I32x8) {
  const int16x8_t words = vmovl_s8(vld1_s8(from));
  return {{vmovl_s16(vget_low_s16(words))}, {vmovl_high_s16(words)}};
}
TRINE_INLINE U32x4 WidenHalves(const uint16_t* from, U32x4) { return {vmovl_u16(vld1_u16(from))}; }

#else

constexpr int kWidenedBytes = 4;

TRINE_INLINE I32x4 WidenBytes(const int8_t* from, I32x4) {
  return {I32x4::Raw{from[0], from[1], from[2], from[3]}};
}
TRINE_INLINE U32x4 WidenHalves(const uint16_t* from, U32x4) {
  return {U32x4::Raw{from[0], from[1], from[2], from[3]}};
}

#endif

template <int N>
TRINE_INLINE U32<N> LoadU16(const uint16_t* from) {
  if constexpr (U32<N>::kIsNative) {
    return WidenHalves(from, U32<N>());
  } else {
    return {LoadU16<N / 2>(from), LoadU16<N / 2>(from + N / 2)};
  }
}

#if defined(__aarch64__)
// Narrows four registers to one. The compiler would narrow and store each of them separately.
TRINE_INLINE void StoreNarrowed(I32x16 x, int8_t* to) {
  const auto first = vuzp1q_s16(vreinterpretq_s16_s32(x.lo.lo.v), vreinterpretq_s16_s32(x.lo.hi.v));
  const auto last = vuzp1q_s16(vreinterpretq_s16_s32(x.hi.lo.v), vreinterpretq_s16_s32(x.hi.hi.v));
  vst1q_s8(to, vuzp1q_s8(vreinterpretq_s8_s16(first), vreinterpretq_s8_s16(last)));
}
#endif

// Stores the low bits of 32-bit lanes.
template <typename To, typename From, int N>
TRINE_INLINE void StoreNarrowed(Vec<From, N> x, To* to) {
  if constexpr (Vec<From, N>::kIsNative) {
    typedef To Narrow __attribute__((vector_size(N * sizeof(To))));
    const Narrow narrow = __builtin_convertvector(x.v, Narrow);
    __builtin_memcpy(to, &narrow, sizeof(narrow));
  } else {
    StoreNarrowed(x.lo, to);
    StoreNarrowed(x.hi, to + N / 2);
  }
}

#if defined(__F16C__)

template <int N>
TRINE_INLINE F32<N> LoadNativeF16(const uint16_t* from) {
  if constexpr (N == 4) {
    return {_mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)))};
  } else if constexpr (N == 8) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))};
  } else {
#if defined(__AVX512F__)
    return {
        _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)))};
#endif
  }
}

template <int N>
TRINE_INLINE void StoreNativeF16(F32<N> x, uint16_t* to) {
  if constexpr (N == 4) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT));
  } else if constexpr (N == 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm256_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT));
  } else {
#if defined(__AVX512F__)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm512_maskz_cvtps_ph(0xffff, x.v, _MM_FROUND_TO_NEAREST_INT));
#endif
  }
}

#elif defined(__aarch64__)

template <int N>
TRINE_INLINE F32<N> LoadNativeF16(const uint16_t* from) {
  static_assert(N == 4);
  return {vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)))};
}

template <int N>
TRINE_INLINE void StoreNativeF16(F32<N> x, uint16_t* to) {
  static_assert(N == 4);
  vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(x.v)));
}

#else

template <int N>
TRINE_INLINE F32<N> LoadNativeF16(const uint16_t* from) {
  const U32<N> half = LoadU16<N>(from);
  const U32<N> sign = (half & Splat<N>(0x8000u)) << 16;
  const U32<N> magnitude = half & Splat<N>(0x7fffu);
  const U32<N> normal = (magnitude << 13) + Splat<N>(112u << 23);
  // An exponent of all ones stays one; a denormal is a small integer times 2^-24.
  const U32<N> infinite = (magnitude << 13) | Splat<N>(0x7f800000u);
  const F32<N> denormal = Convert<float>(BitCast<int32_t>(magnitude)) * Splat<N>(0x1p-24f);
  U32<N> bits = Select(magnitude >= Splat<N>(0x7c00u), infinite, normal);
  bits = Select(magnitude < Splat<N>(0x400u), BitCast<uint32_t>(denormal), bits);
  return BitCast<float>(bits | sign);
}

// Stores lanes as f16. REQUIRES: abs(x) <= 65504.
template <int N>
TRINE_INLINE void StoreNativeF16(F32<N> x, uint16_t* to) {
  const U32<N> bits = BitCast<uint32_t>(x);
  const U32<N> sign = (bits >> 16) & Splat<N>(0x8000u);
  const U32<N> magnitude = bits & Splat<N>(0x7fffffffu);
  const U32<N> odd = (magnitude >> 13) & Splat<N>(1u);
  const U32<N> normal = (magnitude - Splat<N>(0x38000000u) + Splat<N>(0xfffu) + odd) >> 13;
  // The last bit of 0.5 is 2^-24, that of a denormal f16: the addition rounds to it.
  const F32<N> shifted = BitCast<float>(magnitude) + Splat<N>(0.5f);
  const U32<N> denormal = BitCast<uint32_t>(shifted) - Splat<N>(0x3f000000u);
  StoreNarrowed(Select(magnitude < Splat<N>(0x38800000u), denormal, normal) | sign, to);
}

#endif

template <int N>
TRINE_INLINE F32<N> LoadF16(const uint16_t* from) {
  if constexpr (F32<N>::kIsNative) {
    return LoadNativeF16<N>(from);
  } else {
    return {LoadF16<N / 2>(from), LoadF16<N / 2>(from + N / 2)};
  }
}

// Stores lanes as f16, with magnitudes clamped to 65504. REQUIRES: no lane is a NaN.
template <int N>
TRINE_INLINE void StoreF16Saturated(F32<N> x, uint16_t* to) {
  if constexpr (F32<N>::kIsNative) {
    x = Max(Min(x, Splat<N>(65504.0f)), Splat<N>(-65504.0f));
    StoreNativeF16(x, to);
  } else {
    StoreF16Saturated(x.lo, to);
    StoreF16Saturated(x.hi, to + N / 2);
  }
}

template <int N>
TRINE_INLINE F32<N> LoadBf16(const uint16_t* from) {
#if defined(__aarch64__)
  // Zips run on both vector units of most cores, shifts on one.
  if constexpr (N == 8) {
    const uint16x8_t halves = vld1q_u16(from), zero = vdupq_n_u16(0);
    return {{vreinterpretq_f32_u16(vzip1q_u16(zero, halves))},
            {vreinterpretq_f32_u16(vzip2q_u16(zero, halves))}};
  } else if constexpr (N > 8) {
    return {LoadBf16<N / 2>(from), LoadBf16<N / 2>(from + N / 2)};
  }
#endif
  return BitCast<float>(LoadU16<N>(from) << 16);
}

// Stores lanes as bf16, rounded to nearest even. REQUIRES: no lane is a NaN.
template <int N>
TRINE_INLINE void StoreBf16(F32<N> x, uint16_t* to) {
  const U32<N> bits = BitCast<uint32_t>(x);
  const U32<N> odd = (bits >> 16) & Splat<N>(1u);
  StoreNarrowed((bits + Splat<N>(0x7fffu) + odd) >> 16, to);
}

template <int N>
TRINE_INLINE I32<N> LoadI8AsInts(const int8_t* from) {
  if constexpr (N <= kWidenedBytes) {
    return WidenBytes(from, I32<N>());
  } else {
    return {LoadI8AsInts<N / 2>(from), LoadI8AsInts<N / 2>(from + N / 2)};
  }
}

template <int N>
TRINE_INLINE F32<N> LoadI8(const int8_t* from) {
#if defined(__aarch64__)
  // The addition also widens, and only one unit of a Neoverse V1 converts.
  return SumsToFloats(LoadI8AsInts<N>(from) + Splat<N>(kSumBits));
#else
  return Convert<float>(LoadI8AsInts<N>(from));
#endif
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
