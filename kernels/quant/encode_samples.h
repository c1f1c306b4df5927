// What a fit works on: the values of a block, brought near 1, with the weight of each one's error.

#ifndef TRINE_KERNELS_QUANT_ENCODE_SAMPLES_H_
#define TRINE_KERNELS_QUANT_ENCODE_SAMPLES_H_

#include <algorithm>
#include <cstdint>

#include "kernels/quant/scalar.h"

namespace trine::quant {

// Below this every type stores zeros; it keeps the factors of Normalize within binary32.
inline constexpr float kLeastEncoded = 0x1p-60f;

static inline float PowerOfTwo(int exponent) {
  return FromBits(static_cast<uint32_t>(exponent + 127) << 23);
}

// Pairwise, so that the order is fixed and the compiler can use vectors. Destroys `terms`.
template <int N, class Real>
static inline Real Sum(Real* terms) {
  if constexpr (N == 1) {
    return terms[0];
  } else {
    static_assert(N % 2 == 0);
    for (int i = 0; i < N / 2; ++i) terms[i] += terms[i + N / 2];
    return Sum<N / 2>(terms);
  }
}

template <int N>
static inline float Largest(const float* x) {
  float largest = 0.0f;
  for (int i = 0; i < N; ++i) largest = std::max(largest, Abs(x[i]));
  return largest;
}

// A block of N values: x[i] = original * unit, exactly, with the largest magnitude in [1, 2), or
// below 4 where no unit is small enough. No square or sum leaves binary32.
template <int N>
struct Samples {
  float x[N];
  float w[N];  // of each value's squared error; not set when `zero`
  float unit;
  bool zero;  // nothing to fit: the block is stored as zeros
};

// The power of two that brings a largest magnitude into [1, 2), as near as binary32 can.
static inline float UnitFor(float largest) {
  const int exponent = static_cast<int>(Bits(largest) >> 23) - 127;
  return PowerOfTwo(std::clamp(-exponent, -126, 126));
}

// How much the error of each value counts: its column's importance, times its own magnitude plus
// the mean one. Large weights do more for what a model computes than their share of the squared
// error says; that they count more shows in perplexity.
template <int N>
static void SetWeights(const float* importance, Samples<N>* samples) {
  float magnitude[N];
  for (int i = 0; i < N; ++i) magnitude[i] = Abs(samples->x[i]);
  std::copy_n(magnitude, N, samples->w);
  const float mean = Sum<N>(magnitude) / static_cast<float>(N);
  for (int i = 0; i < N; ++i) samples->w[i] += mean;
  const float heaviest = importance != nullptr ? Largest<N>(importance) : 0.0f;
  if (heaviest < kLeastEncoded) return;
  const float unit = UnitFor(heaviest);
  for (int i = 0; i < N; ++i) samples->w[i] *= std::max(importance[i] * unit, 0x1p-30f);
}

template <int N>
static void Normalize(const float* x, const float* importance, Samples<N>* samples) {
  const float largest = Largest<N>(x);
  samples->zero = largest < kLeastEncoded;
  samples->unit = samples->zero ? 1.0f : UnitFor(largest);
  for (int i = 0; i < N; ++i) samples->x[i] = x[i] * samples->unit;
  if (!samples->zero) SetWeights(importance, samples);
}

}  // namespace trine::quant

#endif  // TRINE_KERNELS_QUANT_ENCODE_SAMPLES_H_
