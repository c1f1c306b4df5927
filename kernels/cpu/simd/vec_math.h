// The functions of the exactness contract, lane by lane: each equals its namesake in
// kernels/reference/math.h bit for bit, with denormals flushed or kept.
//
// Arguments are canonical unless a comment allows more. The order of every operation is that of
// docs/numerics.md; files that include this header are compiled with -ffp-contract=off.

#pragma once

#include <cstdint>

#include "kernels/cpu/simd/vec.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__FAST_MATH__)
#error "The arithmetic of this project is defined: build it without -ffast-math or -Ofast"
#endif

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

constexpr float kTiny = 0x1p-50f;
constexpr float kHuge = 0x1p+50f;

template <int N>
TRINE_INLINE F32<N> SplatBits(uint32_t bits) {
  return BitCast<float>(Splat<N>(bits));
}

// Returns canon(x), for any x.
template <int N>
TRINE_INLINE F32<N> Canon(F32<N> x) {
  const I32<N> not_tiny = MagnitudeIsAtLeast(x, Splat<N>(kTiny));  // nor a NaN
  return ZeroUnless(not_tiny, Max(Min(x, Splat<N>(kHuge)), Splat<N>(-kHuge)));
}

// Returns canon(x) for abs(x) <= 2^50, where there is nothing to clamp.
template <int N>
TRINE_INLINE F32<N> ZeroIfTiny(F32<N> x) {
  return ZeroUnless(MagnitudeIsAtLeast(x, Splat<N>(kTiny)), x);
}

// Returns 1/x for lanes in the domain of the contract, 2^-126 <= abs(x) < 2^126. IEEE division
// rounds correctly, and no quotient is denormal.
template <int N>
TRINE_INLINE F32<N> RecipInDomain(F32<N> x) {
  return Splat<N>(1.0f) / x;
}

// Returns 1/x, for any x; +0 outside the domain.
template <int N>
TRINE_INLINE F32<N> Recip(F32<N> x) {
  const F32<N> magnitude = Abs(x);
  const I32<N> in_domain = (magnitude >= Splat<N>(0x1p-126f)) & (magnitude < Splat<N>(0x1p+126f));
  return ZeroUnless(in_domain, RecipInDomain(x));
}

#if defined(__x86_64__)
TRINE_INLINE __m128 IeeeSqrt(__m128 x) { return _mm_sqrt_ps(x); }
#if defined(__AVX2__)
TRINE_INLINE __m256 IeeeSqrt(__m256 x) { return _mm256_sqrt_ps(x); }
#endif
#if defined(__AVX512F__)
// Does not use _mm512_sqrt_ps, which GCC 12 compiles with a warning.
TRINE_INLINE __m512 IeeeSqrt(__m512 x) { return _mm512_maskz_sqrt_ps(0xffff, x); }
#endif
#elif defined(__aarch64__)
TRINE_INLINE float32x4_t IeeeSqrt(float32x4_t x) { return vsqrtq_f32(x); }
#else
TRINE_INLINE F32x4::Raw IeeeSqrt(F32x4::Raw x) {
  for (int i = 0; i < 4; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
}
#endif

// Returns the square root, for any x; +0 if x is not a positive normal number.
template <int N>
TRINE_INLINE F32<N> Sqrt(F32<N> x) {
  if constexpr (F32<N>::kIsNative) {
    const I32<N> in_domain = (x >= Splat<N>(0x1p-126f)) & (x < SplatBits<N>(0x7f800000));
    return ZeroUnless(in_domain, {IeeeSqrt(x.v)});
  } else {
    return {Sqrt(x.lo), Sqrt(x.hi)};
  }
}

template <int N>
TRINE_INLINE F32<N> Rsqrt(F32<N> x) {
  return Recip(Sqrt(x));
}

// Returns exp(x) for x <= 44.
template <int N>
TRINE_INLINE F32<N> ExpUpTo44(F32<N> x) {
  const I32<N> not_zero = x >= Splat<N>(-44.0f);
  // x = n ln2 + r. Lanes below -44 hold nonsense from here on.
  const F32<N> shifted = x * SplatBits<N>(0x3fb8aa3b) + Splat<N>(12582912.0f);
  // n << 23: the bits of `shifted` besides n, 4B400000, are shifted out.
  const U32<N> exponent = BitCast<uint32_t>(shifted) << 23;
  const F32<N> fn = shifted - Splat<N>(12582912.0f);  // n exactly: both are integers below 2^24
  const F32<N> r = (x - fn * SplatBits<N>(0x3f317200)) - fn * SplatBits<N>(0x35bfbe8e);
  F32<N> p = SplatBits<N>(0x3ab510d4);
  p = p * r + SplatBits<N>(0x3c091db5);
  p = p * r + SplatBits<N>(0x3d2aac7e);
  p = p * r + SplatBits<N>(0x3e2aaa48);
  p = p * r + SplatBits<N>(0x3efffffe);
  p = p * r + Splat<N>(1.0f);
  p = p * r + Splat<N>(1.0f);
  return ZeroUnless(not_zero, BitCast<float>(BitCast<uint32_t>(p) + exponent));
}

// Returns exp(x), for any x but a NaN.
template <int N>
TRINE_INLINE F32<N> Exp(F32<N> x) {
  return ExpUpTo44(Min(x, Splat<N>(44.0f)));
}

// Returns recip(1 + exp(x)). The sum lies in [1, 2^64], where recip needs no test. The result is at
// most 1, so that a canonical number times it stays within canon's upper bound.
template <int N>
TRINE_INLINE F32<N> RecipOnePlusExp(F32<N> x) {
  return RecipInDomain(Splat<N>(1.0f) + Exp(x));
}

template <int N>
TRINE_INLINE F32<N> Sigmoid(F32<N> x) {
  return ZeroIfTiny(RecipOnePlusExp(-x));
}

template <int N>
TRINE_INLINE F32<N> Silu(F32<N> x) {
  return ZeroIfTiny(x * RecipOnePlusExp(-x));
}

template <int N>
TRINE_INLINE F32<N> Gelu(F32<N> x) {
  const F32<N> t = Max(Min(x, Splat<N>(16.0f)), Splat<N>(-16.0f));
  const F32<N> cubic = Splat<N>(1.0f) + SplatBits<N>(0x3d372713) * (t * t);
  const F32<N> u = (SplatBits<N>(0x3fcc422a) * t) * cubic;
  return ZeroIfTiny(x * RecipOnePlusExp(-u));
}

template <int N>
TRINE_INLINE F32<N> Tanh(F32<N> x) {
  return ZeroIfTiny(Splat<N>(1.0f) - Splat<N>(2.0f) * RecipOnePlusExp(x + x));
}

template <int N>
TRINE_INLINE F32<N> Relu(F32<N> x) {
  return ZeroUnless(x > Splat<N>(0.0f), Canon(x));
}

template <int N>
TRINE_INLINE F32<N> SoftcapValue(F32<N> x, F32<N> cap, F32<N> inverse_cap) {
  return Canon(cap * Tanh(Canon(x * inverse_cap)));
}

// --- One number, by the same code

TRINE_INLINE float FirstLane(F32x4 x) { return x.v[0]; }
TRINE_INLINE float Canon(float x) { return FirstLane(Canon(Splat<4>(x))); }
TRINE_INLINE float Recip(float x) { return FirstLane(Recip(Splat<4>(x))); }
TRINE_INLINE float Rsqrt(float x) { return FirstLane(Rsqrt(Splat<4>(x))); }
TRINE_INLINE float Exp(float x) { return FirstLane(Exp(Splat<4>(x))); }

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
