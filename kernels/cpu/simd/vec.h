// Vectors of N lanes for every instruction set: one native register, or a pair of halves.
//
// A vector wider than the registers of the level is a pair of vectors of half its lanes, so the
// same source runs on 16-byte NEON and on 64-byte AVX-512, and a value stays in registers on both
// (GCC keeps its own oversized vector types in memory, and compares them lane by lane).
//
// Every operation acts on each lane alone and rounds as its scalar counterpart does. Comparisons
// give masks: all bits of a lane set, or none. Loads and stores ask for no alignment.
//
// Files of different instruction sets include this header, so everything in it lies in an unnamed
// namespace and is always inlined: no copy is left for the linker to lend to another level. For
// the same reason it uses nothing of the standard library.

#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifndef TRINE_CPU_LEVEL
#error "Kernels are compiled per instruction set level: define TRINE_CPU_LEVEL"
#endif

#define TRINE_INLINE [[gnu::always_inline]] static inline

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

#if defined(__AVX512F__)
constexpr int kNativeBytes = 64;
#elif defined(__AVX2__)
constexpr int kNativeBytes = 32;
#else
constexpr int kNativeBytes = 16;
#endif
// The number of 32-bit lanes in one register.
constexpr int kNativeLanes = kNativeBytes / 4;
// The number of lanes a loop over elements takes at a time: one register, or two small ones.
constexpr int kLanes = kNativeLanes < 8 ? 8 : kNativeLanes;

template <typename T, int N, bool kFitsRegister = (N * int{sizeof(T)} <= kNativeBytes)>
struct Vec;

template <typename T, int N>
struct Vec<T, N, true> {
  static constexpr bool kIsNative = true;
  typedef T Raw __attribute__((vector_size(N * sizeof(T))));
  Raw v;
};

template <typename T, int N>
struct Vec<T, N, false> {
  static constexpr bool kIsNative = false;
  Vec<T, N / 2> lo;
  Vec<T, N / 2> hi;
};

template <int N>
using F32 = Vec<float, N>;
template <int N>
using I32 = Vec<int32_t, N>;
template <int N>
using U32 = Vec<uint32_t, N>;

using F32x4 = F32<4>;
using F32x8 = F32<8>;
using F32x16 = F32<16>;
using F32x32 = F32<32>;  // the partial sums of a float sum
using I32x4 = I32<4>;
using I32x8 = I32<8>;
using I32x16 = I32<16>;
using U32x4 = U32<4>;
using U32x8 = U32<8>;
using U32x16 = U32<16>;

// --- Making vectors, memory

template <int N, typename T>
TRINE_INLINE Vec<T, N> Splat(T x) {
  if constexpr (Vec<T, N>::kIsNative) {
    return {x - typename Vec<T, N>::Raw{}};  // x - 0 is x, for x = -0 too
  } else {
    return {Splat<N / 2>(x), Splat<N / 2>(x)};
  }
}

template <int N, typename T>
TRINE_INLINE Vec<T, N> Load(const T* from) {
  if constexpr (Vec<T, N>::kIsNative) {
    Vec<T, N> result;
    __builtin_memcpy(&result.v, from, sizeof(result.v));
    return result;
  } else {
    return {Load<N / 2>(from), Load<N / 2>(from + N / 2)};
  }
}

template <typename T, int N>
TRINE_INLINE void Store(Vec<T, N> x, T* to) {
  if constexpr (Vec<T, N>::kIsNative) {
    __builtin_memcpy(to, &x.v, sizeof(x.v));
  } else {
    Store(x.lo, to);
    Store(x.hi, to + N / 2);
  }
}

// Loads the first `count` lanes; the others are zeros.
template <int N, typename T>
TRINE_INLINE Vec<T, N> LoadPartial(const T* from, int64_t count) {
  T lanes[N] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return Load<N>(lanes);
}

template <typename T, int N>
TRINE_INLINE void StorePartial(Vec<T, N> x, T* to, int64_t count) {
  T lanes[N];
  Store(x, lanes);
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
}

// --- Arithmetic and bits, lane by lane. Signed integers wrap where they must not overflow in
// scalar code; shifts of signed lanes are arithmetic.

#define TRINE_VEC_OPERATOR(op)                                   \
  template <typename T, int N>                                   \
  TRINE_INLINE Vec<T, N> operator op(Vec<T, N> a, Vec<T, N> b) { \
    if constexpr (Vec<T, N>::kIsNative) {                        \
      return {a.v op b.v};                                       \
    } else {                                                     \
      return {a.lo op b.lo, a.hi op b.hi};                       \
    }                                                            \
  }
TRINE_VEC_OPERATOR(+)
TRINE_VEC_OPERATOR(-)
TRINE_VEC_OPERATOR(*)
TRINE_VEC_OPERATOR(/)
TRINE_VEC_OPERATOR(&)
TRINE_VEC_OPERATOR(|)
TRINE_VEC_OPERATOR(^)
#undef TRINE_VEC_OPERATOR

#define TRINE_VEC_SHIFT(op)                                   \
  template <typename T, int N>                                \
  TRINE_INLINE Vec<T, N> operator op(Vec<T, N> a, int bits) { \
    if constexpr (Vec<T, N>::kIsNative) {                     \
      return {a.v op bits};                                   \
    } else {                                                  \
      return {a.lo op bits, a.hi op bits};                    \
    }                                                         \
  }
TRINE_VEC_SHIFT(<<)
TRINE_VEC_SHIFT(>>)
#undef TRINE_VEC_SHIFT

#define TRINE_VEC_COMPARE(op)                                 \
  template <typename T, int N>                                \
  TRINE_INLINE I32<N> operator op(Vec<T, N> a, Vec<T, N> b) { \
    static_assert(sizeof(T) == 4);                            \
    if constexpr (Vec<T, N>::kIsNative) {                     \
      return {(typename I32<N>::Raw)(a.v op b.v)};            \
    } else {                                                  \
      return {a.lo op b.lo, a.hi op b.hi};                    \
    }                                                         \
  }
TRINE_VEC_COMPARE(<)
TRINE_VEC_COMPARE(<=)
TRINE_VEC_COMPARE(>)
TRINE_VEC_COMPARE(>=)
TRINE_VEC_COMPARE(==)
#undef TRINE_VEC_COMPARE

template <typename T, int N>
TRINE_INLINE Vec<T, N>& operator+=(Vec<T, N>& a, Vec<T, N> b) {
  return a = a + b;
}

template <int N>
TRINE_INLINE F32<N> operator-(F32<N> a) {
  if constexpr (F32<N>::kIsNative) {
    return {-a.v};
  } else {
    return {-a.lo, -a.hi};
  }
}

// Returns a where the mask is set, else b.
template <typename T, int N>
TRINE_INLINE Vec<T, N> Select(I32<N> mask, Vec<T, N> a, Vec<T, N> b) {
  if constexpr (Vec<T, N>::kIsNative) {
    return {mask.v ? a.v : b.v};
  } else {
    return {Select(mask.lo, a.lo, b.lo), Select(mask.hi, a.hi, b.hi)};
  }
}

// Return the lesser, or the greater, argument; either one if one is a NaN or both are zeros.
template <typename T, int N>
TRINE_INLINE Vec<T, N> Min(Vec<T, N> a, Vec<T, N> b) {
  return Select(a < b, a, b);
}
template <typename T, int N>
TRINE_INLINE Vec<T, N> Max(Vec<T, N> a, Vec<T, N> b) {
  return Select(a > b, a, b);
}
// For floats it is one instruction, which compilers do not make of the code above: on Arm, because
// the instruction treats NaNs and zeros differently; with AVX-512, GCC compares and blends.
#if defined(__x86_64__)
#define TRINE_NATIVE_MIN_MAX
TRINE_INLINE __m128 NativeMin(__m128 a, __m128 b) { return _mm_min_ps(a, b); }
TRINE_INLINE __m128 NativeMax(__m128 a, __m128 b) { return _mm_max_ps(a, b); }
#if defined(__AVX2__)
TRINE_INLINE __m256 NativeMin(__m256 a, __m256 b) { return _mm256_min_ps(a, b); }
TRINE_INLINE __m256 NativeMax(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
#endif
#if defined(__AVX512F__)
// The masked forms are used because GCC 12 warns about the unmasked forms.
TRINE_INLINE __m512 NativeMin(__m512 a, __m512 b) { return _mm512_maskz_min_ps(0xffff, a, b); }
TRINE_INLINE __m512 NativeMax(__m512 a, __m512 b) { return _mm512_maskz_max_ps(0xffff, a, b); }
#endif
#elif defined(__aarch64__)
#define TRINE_NATIVE_MIN_MAX
TRINE_INLINE float32x4_t NativeMin(float32x4_t a, float32x4_t b) { return vminq_f32(a, b); }
TRINE_INLINE float32x4_t NativeMax(float32x4_t a, float32x4_t b) { return vmaxq_f32(a, b); }
#endif
#if defined(TRINE_NATIVE_MIN_MAX)
template <int N>
TRINE_INLINE F32<N> Min(F32<N> a, F32<N> b) {
  if constexpr (F32<N>::kIsNative) {
    return {NativeMin(a.v, b.v)};
  } else {
    return {Min(a.lo, b.lo), Min(a.hi, b.hi)};
  }
}
template <int N>
TRINE_INLINE F32<N> Max(F32<N> a, F32<N> b) {
  if constexpr (F32<N>::kIsNative) {
    return {NativeMax(a.v, b.v)};
  } else {
    return {Max(a.lo, b.lo), Max(a.hi, b.hi)};
  }
}
#undef TRINE_NATIVE_MIN_MAX
#endif

// --- The same bits, or the same value, as another type

template <typename To, typename T, int N>
TRINE_INLINE Vec<To, N> BitCast(Vec<T, N> x) {
  static_assert(sizeof(To) == sizeof(T));
  if constexpr (Vec<T, N>::kIsNative) {
    return {(typename Vec<To, N>::Raw)x.v};
  } else {
    return {BitCast<To>(x.lo), BitCast<To>(x.hi)};
  }
}

// Turns integer sums that began with kSumBits into floats. kSumBits are the bits of the float
// 1.5 * 2^23, so such a sum has the bits of that float plus the sum, up to 2^22 either way. Then a
// subtraction gives the sum, which costs less than a conversion.
constexpr int32_t kSumBits = 0x4b400000;
template <int N>
TRINE_INLINE F32<N> SumsToFloats(I32<N> sums) {
  return BitCast<float>(sums) - Splat<N>(12582912.0f);
}

// Rounds integers to the nearest float, ties to even. Truncates floats to integers; they must fit.
template <typename To, typename T, int N>
TRINE_INLINE Vec<To, N> Convert(Vec<T, N> x) {
  static_assert(sizeof(To) == sizeof(T));
  if constexpr (Vec<T, N>::kIsNative) {
    return {__builtin_convertvector(x.v, typename Vec<To, N>::Raw)};
  } else {
    return {Convert<To>(x.lo), Convert<To>(x.hi)};
  }
}

// Returns the lanes of x where the mask is set, and +0 in the others.
template <int N>
TRINE_INLINE F32<N> ZeroUnless(I32<N> mask, F32<N> x) {
  return BitCast<float>(mask & BitCast<int32_t>(x));
}

template <int N>
TRINE_INLINE F32<N> Abs(F32<N> x) {
  return BitCast<float>(BitCast<uint32_t>(x) & Splat<N>(0x7fffffffu));
}

// Returns abs(x) >= bound; false if x is a NaN. REQUIRES: no lane of the bound is negative.
template <int N>
TRINE_INLINE I32<N> MagnitudeIsAtLeast(F32<N> x, F32<N> bound) {
#if defined(__aarch64__)
  if constexpr (F32<N>::kIsNative) {
    return {(typename I32<N>::Raw)vcageq_f32(x.v, bound.v)};
  } else {
    return {MagnitudeIsAtLeast(x.lo, bound.lo), MagnitudeIsAtLeast(x.hi, bound.hi)};
  }
#else
  return Abs(x) >= bound;
#endif
}

// --- Halves

template <typename T, int N>
TRINE_INLINE Vec<T, N / 2> Low(Vec<T, N> x) {
  if constexpr (!Vec<T, N>::kIsNative) {
    return x.lo;
  } else if constexpr (N == 16) {
    return {__builtin_shufflevector(x.v, x.v, 0, 1, 2, 3, 4, 5, 6, 7)};
  } else {
    static_assert(N == 8);
    return {__builtin_shufflevector(x.v, x.v, 0, 1, 2, 3)};
  }
}

template <typename T, int N>
TRINE_INLINE Vec<T, N / 2> High(Vec<T, N> x) {
  if constexpr (!Vec<T, N>::kIsNative) {
    return x.hi;
  } else if constexpr (N == 16) {
    return {__builtin_shufflevector(x.v, x.v, 8, 9, 10, 11, 12, 13, 14, 15)};
  } else {
    static_assert(N == 8);
    return {__builtin_shufflevector(x.v, x.v, 4, 5, 6, 7)};
  }
}

template <typename T, int N>
TRINE_INLINE Vec<T, 2 * N> Join(Vec<T, N> low, Vec<T, N> high) {
  if constexpr (!Vec<T, 2 * N>::kIsNative) {
    return {low, high};
  } else if constexpr (N == 8) {
    return {__builtin_shufflevector(low.v, high.v, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                                    15)};
  } else {
    static_assert(N == 4);
    return {__builtin_shufflevector(low.v, high.v, 0, 1, 2, 3, 4, 5, 6, 7)};
  }
}

// --- Over the lanes

// Joins the partial sums of the contract: for n = N/2, N/4 .. 1: s[j] += s[j + n]. Returns s[0].
template <typename T, int N>
TRINE_INLINE T JoinSums(Vec<T, N> s) {
  if constexpr (N > 4) {
    return JoinSums(Low(s) + High(s));
  } else {
    static_assert(N == 4);
    const auto pairs = s.v + __builtin_shufflevector(s.v, s.v, 2, 3, 2, 3);
    return pairs[0] + pairs[1];
  }
}

// Adds the halves until four partial sums are left: the first steps of JoinSums.
template <typename T, int N>
TRINE_INLINE Vec<T, 4> JoinToFour(Vec<T, N> s) {
  if constexpr (N > 4) {
    return JoinToFour(Low(s) + High(s));
  } else {
    return s;
  }
}

// Returns JoinSums of argument i in lane i, at a quarter of the cost.
template <typename T>
TRINE_INLINE Vec<T, 4> JoinSums(Vec<T, 4> a, Vec<T, 4> b, Vec<T, 4> c, Vec<T, 4> d) {
  // The transposed rows: s0 holds partial sum 0 of a, b, c and d, and so on.
  const auto ab01 = __builtin_shufflevector(a.v, b.v, 0, 4, 1, 5);
  const auto ab23 = __builtin_shufflevector(a.v, b.v, 2, 6, 3, 7);
  const auto cd01 = __builtin_shufflevector(c.v, d.v, 0, 4, 1, 5);
  const auto cd23 = __builtin_shufflevector(c.v, d.v, 2, 6, 3, 7);
  // s0 + s2 and s1 + s3, first for a and b, then for c and d.
  const auto ab = ab01 + ab23;
  const auto cd = cd01 + cd23;
  return {__builtin_shufflevector(ab, cd, 0, 1, 4, 5) +
          __builtin_shufflevector(ab, cd, 2, 3, 6, 7)};
}

// Returns JoinSums of argument i in lane i, for native vectors of sixteen lanes: one addition joins
// the halves of two vectors.
template <typename T>
TRINE_INLINE Vec<T, 4> JoinSums(Vec<T, 16> a, Vec<T, 16> b, Vec<T, 16> c, Vec<T, 16> d) {
  static_assert(Vec<T, 16>::kIsNative);
  const auto halves_added = [](auto x, auto y) {
    return __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
           __builtin_shufflevector(x, y, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30,
                                   31);
  };
  const auto ab = halves_added(a.v, b.v), cd = halves_added(c.v, d.v);  // eight sums of each
  // Four sums of each, then two.
  const auto fours =
      __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
      __builtin_shufflevector(ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  const auto twos = fours + __builtin_shufflevector(fours, fours, 2, 3, 2, 3, 6, 7, 6, 7, 10, 11,
                                                    10, 11, 14, 15, 14, 15);
  const auto sums = twos + __builtin_shufflevector(twos, twos, 1, 1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11,
                                                   13, 13, 15, 15);
  return {__builtin_shufflevector(sums, sums, 0, 4, 8, 12)};
}

// Returns the largest lane. REQUIRES: no lane is a NaN.
template <typename T, int N>
TRINE_INLINE T MaxLane(Vec<T, N> x) {
  if constexpr (N > 4) {
    return MaxLane(Max(Low(x), High(x)));
  } else {
    static_assert(N == 4);
    x = Max(x, {__builtin_shufflevector(x.v, x.v, 2, 3, 2, 3)});
    return x.v[0] > x.v[1] ? x.v[0] : x.v[1];
  }
}

// Returns the largest lane of argument i in lane i.
TRINE_INLINE F32x4 MaxLanes(F32x4 a, F32x4 b, F32x4 c, F32x4 d) {
#if defined(__aarch64__)
  return {vpmaxq_f32(vpmaxq_f32(a.v, b.v), vpmaxq_f32(c.v, d.v))};
#else
  const F32x4 ab = Max(F32x4{__builtin_shufflevector(a.v, b.v, 0, 4, 1, 5)},
                       F32x4{__builtin_shufflevector(a.v, b.v, 2, 6, 3, 7)});
  const F32x4 cd = Max(F32x4{__builtin_shufflevector(c.v, d.v, 0, 4, 1, 5)},
                       F32x4{__builtin_shufflevector(c.v, d.v, 2, 6, 3, 7)});
  return Max(F32x4{__builtin_shufflevector(ab.v, cd.v, 0, 1, 4, 5)},
             F32x4{__builtin_shufflevector(ab.v, cd.v, 2, 3, 6, 7)});
#endif
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
