// Fits x ~ scale * level, where the levels are those of a grid. Every format without minimums uses
// it, and all K formats use it for the scales that they store.
//
// A grid has kStarts and Nearest. kStarts are the levels on which the search puts the value of the
// largest magnitude at first; Nearest returns the level nearest to a number. The input of a fit is
// the values of a block, scaled to about 1, and the weights of their errors.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/quant/block_types.h"
#include "kernels/quant/scalar.h"

namespace trine::quant {

// Every type stores smaller blocks as zeros, which keeps the factors of Normalize within binary32.
inline constexpr float kLeastEncoded = 0x1p-60f;

static inline float PowerOfTwo(int exponent) {
  return FromBits(static_cast<uint32_t>(exponent + 127) << 23);
}

// Adds pairwise, so that the order is fixed and the compiler can vectorise. Overwrites `terms`.
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

// A block of N values: x[i] = original * unit, exactly. The largest magnitude is in [1, 2), or
// below 4 if no unit is small enough. Squares and sums stay within binary32.
template <int N>
struct Samples {
  float x[N];
  float w[N];  // the weight of each value's squared error; not set if `zero`
  float unit;
  bool zero;  // the block is stored as zeros, without a fit
};

// Returns the power of two that brings `largest` into [1, 2), or as near as binary32 can.
static inline float UnitFor(float largest) {
  const int exponent = static_cast<int>(Bits(largest) >> 23) - 127;
  return PowerOfTwo(std::clamp(-exponent, -126, 126));
}

// Sets the weight of each value's error: the importance of its column times the sum of the value's
// own magnitude and the mean one. Large weights affect a model's results more than their share of
// the
// squared error suggests; weighting them more improves perplexity.
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

// Rounds half to even. REQUIRES: |x| < 2^22.
static inline float RoundToFloat(float x) { return (x + 12582912.0f) - 12582912.0f; }

// The integers from kLow to kHigh. Its starts lie up to `Inside` steps of 1 / PerUnit within both
// ends and up to `Outside` steps beyond them, because clipping the largest value may improve the
// others.
template <int Low, int High, int PerUnit, int Inside, int Outside>
struct IntegerGrid {
  static constexpr int kLow = Low;
  static constexpr int kHigh = High;
  static constexpr int kStartsPerEnd = Inside + 1 + Outside;

  static constexpr auto MakeStarts() {
    constexpr bool kTwoEnds = Low < 0;
    std::array<float, kTwoEnds ? 2 * kStartsPerEnd : kStartsPerEnd> starts{};
    for (int i = 0; i < kStartsPerEnd; ++i) {
      const float step = static_cast<float>(i - Inside) / static_cast<float>(PerUnit);
      starts[static_cast<size_t>(i)] = static_cast<float>(High) + step;
      if (kTwoEnds) starts[static_cast<size_t>(kStartsPerEnd + i)] = static_cast<float>(Low) - step;
    }
    return starts;
  }
  static constexpr auto kStarts = MakeStarts();

  static float Nearest(float x) {
    x = x < static_cast<float>(Low) ? static_cast<float>(Low) : x;
    x = x > static_cast<float>(High) ? static_cast<float>(High) : x;
    return RoundToFloat(x);
  }
};

// Computes the level of every value for a scale of 1 / inverse.
template <class Grid, int N>
static inline void Levels(const float* x, float inverse, float* level) {
  for (int i = 0; i < N; ++i) level[i] = Grid::Nearest(x[i] * inverse);
}

// Returns 0 for a scale whose inverse would be infinite, so that every value gets the level 0.
static inline float InverseOrZero(float scale) {
  return Abs(scale) < 0x1p-125f ? 0.0f : 1.0f / scale;
}

// Returns the weighted squared error with `scale` as it is stored. GCC unrolls such a loop before
// it could vectorise it if the function is inlined into a caller's loop. So this function and the
// others over a part's values are not inlined.
template <class Grid, int N>
[[gnu::noinline]] static float ErrorAt(const float* x, const float* w, float scale) {
  const float inverse = InverseOrZero(scale);
  float terms[N];
  for (int i = 0; i < N; ++i) {
    const float error = x[i] - scale * Grid::Nearest(x[i] * inverse);
    terms[i] = w[i] * error * error;
  }
  return Sum<N>(terms);
}

// A scale for a block, with measures of its fit.
struct ScaleFit {
  float scale = 0.0f;
  float gain = 0.0f;       // the part of the sum of w*x*x that the fit explains
  float curvature = 0.0f;  // sum of w*level*level: the cost of a change of the scale
};

// Returns the best scale for the levels that a scale of 1 / inverse gives.
template <class Grid, int N>
[[gnu::noinline]] static ScaleFit RefitScale(const float* x, const float* w, float inverse) {
  float xq[N], qq[N];
  for (int i = 0; i < N; ++i) {
    const float level = Grid::Nearest(x[i] * inverse);
    const float weighted = w[i] * level;
    xq[i] = weighted * x[i];
    qq[i] = weighted * level;
  }
  ScaleFit fit;
  const float cross = Sum<N>(xq);
  fit.curvature = Sum<N>(qq);
  if (fit.curvature > 0.0f) {
    fit.scale = cross / fit.curvature;
    fit.gain = cross * fit.scale;
  }
  return fit;
}

inline constexpr int kRefinements = 2;

// Returns the best scale found. REQUIRES: x is normalised, or smaller.
template <class Grid, int N>
static ScaleFit FitScale(const float* x, const float* w) {
  int at = 0;
  for (int i = 1; i < N; ++i) {
    if (Abs(x[i]) > Abs(x[at])) at = i;
  }
  ScaleFit best;
  if (Abs(x[at]) < kLeastEncoded) return best;
  const float inverse_largest = 1.0f / x[at];
  for (const float start : Grid::kStarts) {
    const ScaleFit fit = RefitScale<Grid, N>(x, w, start * inverse_largest);
    if (fit.gain > best.gain) best = fit;
  }
  for (int i = 0; i < kRefinements && best.scale != 0.0f; ++i) {
    const ScaleFit fit = RefitScale<Grid, N>(x, w, 1.0f / best.scale);
    if (!(fit.gain > best.gain)) break;
    best = fit;
  }
  return best;
}

// An f16 and its value times the samples' unit.
struct HalfScale {
  uint16_t bits = 0;
  float value = 0.0f;
};

// Stores a zero without a sign, so that no result depends on how compilers treat -0.
static inline HalfScale FromHalf(uint16_t bits, float unit) {
  if ((bits & 0x7fffu) == 0) bits = 0;
  return {bits, F16ToF32(bits) * unit};
}

static inline HalfScale ToHalf(float value, float unit) {
  return FromHalf(F32ToF16Saturated(value / unit), unit);
}

// Returns `half` and the f16 numbers next to it. The best scale, rounded, need not be the best f16,
// least of all among denormals, which are far apart.
static inline std::array<HalfScale, 3> Neighbours(HalfScale half, float unit) {
  const uint16_t sign = half.bits & 0x8000u;
  const int magnitude = half.bits & 0x7fff;
  std::array<HalfScale, 3> result;
  constexpr int kSteps[3] = {0, 1, -1};
  for (size_t i = 0; i < 3; ++i) {
    const int stepped = std::clamp(magnitude + kSteps[i], 0, 0x7bff);
    result[i] = FromHalf(static_cast<uint16_t>(sign | stepped), unit);
  }
  return result;
}

// Returns the f16 near `scale` with the least error.
template <class Grid, int N>
static HalfScale BestHalf(const float* x, const float* w, float scale, float unit) {
  HalfScale best;
  float least = 0.0f;
  bool first = true;
  for (const HalfScale& half : Neighbours(ToHalf(scale, unit), unit)) {
    const float error = ErrorAt<Grid, N>(x, w, half.value);
    if (first || error < least) best = half, least = error;
    first = false;
  }
  return best;
}

template <class Grid, int N>
static HalfScale FitHalfScale(const float* x, const float* w, float unit) {
  return BestHalf<Grid, N>(x, w, FitScale<Grid, N>(x, w).scale, unit);
}

}  // namespace trine::quant
