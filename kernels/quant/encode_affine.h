// Fits x ~ scale * q - min with q from 0 to High: the core of the formats that have minimums.

#ifndef TRINE_KERNELS_QUANT_ENCODE_AFFINE_H_
#define TRINE_KERNELS_QUANT_ENCODE_AFFINE_H_

#include <algorithm>

#include "kernels/quant/encode_scale.h"

namespace trine::quant {

// Which minimums a format can store.
enum class Minimum { kAny, kNotNegative };

struct AffineFit {
  float scale = 0.0f;
  float min = 0.0f;
  float gain = 0.0f;       // how much of the sum of w*x*x it explains
  float curvature = 0.0f;  // sum of w*q*q: what a change of the scale costs
};

template <int High>
static inline float NearestAbove(float x, float min, float inverse) {
  x = (x + min) * inverse;
  x = x < 0.0f ? 0.0f : x;
  x = x > static_cast<float>(High) ? static_cast<float>(High) : x;
  return RoundToFloat(x);
}

// Weighted squared error when `scale` and `min` are what is stored.
template <int High, int N>
[[gnu::noinline]] static float AffineErrorAt(const float* x, const float* w, float scale,
                                             float min) {
  const float inverse = InverseOrZero(scale);
  float terms[N];
  for (int i = 0; i < N; ++i) {
    const float error = x[i] - (scale * NearestAbove<High>(x[i], min, inverse) - min);
    terms[i] = w[i] * error * error;
  }
  return Sum<N>(terms);
}

// The sums over a block that do not change with q.
struct AffineSums {
  float w = 0.0f;
  float wx = 0.0f;
};

template <int N>
static AffineSums SumsOf(const float* x, const float* w) {
  float ws[N], wx[N];
  for (int i = 0; i < N; ++i) {
    ws[i] = w[i];
    wx[i] = w[i] * x[i];
  }
  AffineSums sums;
  sums.w = Sum<N>(ws);
  sums.wx = Sum<N>(wx);
  return sums;
}

// The best scale and minimum for the q that 1 / inverse and `min` give.
template <int High, int N>
[[gnu::noinline]] static AffineFit RefitAffine(const float* x, const float* w,
                                               const AffineSums& sums, Minimum minimum,
                                               float inverse, float min) {
  float wq[N], wqq[N], wqx[N];
  for (int i = 0; i < N; ++i) {
    const float q = NearestAbove<High>(x[i], min, inverse);
    wq[i] = w[i] * q;
    wqq[i] = wq[i] * q;
    wqx[i] = wq[i] * x[i];
  }
  const float q = Sum<N>(wq);
  const float qq = Sum<N>(wqq);
  const float qx = Sum<N>(wqx);
  AffineFit fit;
  fit.curvature = qq;
  const float determinant = sums.w * qq - q * q;
  if (determinant > 0.0f) {
    fit.scale = (sums.w * qx - q * sums.wx) / determinant;
    fit.min = (q * qx - qq * sums.wx) / determinant;
  } else {
    fit.min = -sums.wx / sums.w;  // one level for all
  }
  if (minimum == Minimum::kNotNegative && fit.min < 0.0f) {
    fit.min = 0.0f;
    fit.scale = qq > 0.0f ? qx / qq : 0.0f;
  }
  if (fit.scale < 0.0f) fit.scale = 0.0f;
  // Equals the explained part where scale and min solve the equations, as they do above.
  fit.gain = fit.scale * qx - fit.min * sums.wx;
  return fit;
}

// How many levels the range is stretched over to begin with, beside High itself.
inline constexpr float kStretches[] = {-0.8f, -0.6f, -0.4f, -0.2f, 0.0f, 0.2f, 0.4f, 0.6f, 0.8f};

template <int High, int N>
static AffineFit FitAffine(const float* x, const float* w, Minimum minimum) {
  float low = x[0], high = x[0];
  for (int i = 1; i < N; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  if (minimum == Minimum::kNotNegative) low = std::min(low, 0.0f);
  const AffineSums sums = SumsOf<N>(x, w);
  AffineFit best;
  if (high - low < kLeastEncoded) {
    best.min = -low;
    return best;
  }
  const float inverse_range = 1.0f / (high - low);
  for (const float stretch : kStretches) {
    const float inverse = (static_cast<float>(High) + stretch) * inverse_range;
    const AffineFit fit = RefitAffine<High, N>(x, w, sums, minimum, inverse, -low);
    if (fit.gain > best.gain) best = fit;
  }
  for (int i = 0; i < kRefinements && best.scale > 0.0f; ++i) {
    const AffineFit fit = RefitAffine<High, N>(x, w, sums, minimum, 1.0f / best.scale, best.min);
    if (!(fit.gain > best.gain)) break;
    best = fit;
  }
  return best;
}

}  // namespace trine::quant

#endif  // TRINE_KERNELS_QUANT_ENCODE_AFFINE_H_
