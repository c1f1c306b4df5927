// Fits x ~ scale * q - min with q from 0 to High, for the formats that have minimums.
#pragma once

#include <algorithm>

#include "kernels/quant/encode_scale.h"

namespace trine::quant {

// The minimums that a format can store.
enum class Minimum { kAny, kNotNegative };

// A scale and a minimum for a block, with measures of their fit.
struct AffineFit {
  float scale = 0.0f;
  float min = 0.0f;
  double gain = 0.0;       // the part of the sum of w*x*x that the fit explains
  float curvature = 0.0f;  // sum of w*q*q: the cost of a change of the scale
};

template <int High>
static inline float NearestAbove(float x, float min, float inverse) {
  x = (x + min) * inverse;
  x = x < 0.0f ? 0.0f : x;
  x = x > static_cast<float>(High) ? static_cast<float>(High) : x;
  return RoundToFloat(x);
}

// Returns the weighted squared error with `scale` and `min` as they are stored.
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

// Least squares are differences of sums that may be nearly equal. Binary32 is enough if weights and
// values keep the sums apart. Binary64 is always enough, because every product below is exact in
// it.

// Returns whether binary32 would leave mostly noise: one value has nearly all the weight, or all
// values are nearly the same. Without importance no weight is 257 times another.
template <int N>
static bool NeedsBinary64(const float* x, const float* w) {
  float low = x[0], high = x[0], lightest = w[0], heaviest = w[0];
  for (int i = 1; i < N; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
    lightest = std::min(lightest, w[i]);
    heaviest = std::max(heaviest, w[i]);
  }
  return heaviest > 512.0f * lightest || 2.0f * (high - low) < Largest<N>(x);
}

// Sums over a block that do not depend on q.
template <class Real>
struct AffineSums {
  Real w = 0;
  Real wx = 0;
};

template <class Real, int N>
static AffineSums<Real> SumsOf(const float* x, const float* w) {
  Real ws[N], wx[N];
  for (int i = 0; i < N; ++i) {
    ws[i] = w[i];
    wx[i] = ws[i] * x[i];
  }
  AffineSums<Real> sums;
  sums.w = Sum<N>(ws);
  sums.wx = Sum<N>(wx);
  return sums;
}

// A determinant a * b - c * c that is below this fraction of a * b is rounding error.
inline constexpr float kLeastDeterminant = 0x1p-48f;

// Returns the best scale and minimum for the q that a scale of 1 / inverse and `min` give.
template <class Real, int High, int N>
[[gnu::noinline]] static AffineFit RefitAffine(const float* x, const float* w,
                                               const AffineSums<Real>& sums, Minimum minimum,
                                               float inverse, float min) {
  Real wq[N], wqq[N], wqx[N];
  for (int i = 0; i < N; ++i) {
    const Real q = NearestAbove<High>(x[i], min, inverse);
    wq[i] = w[i] * q;
    wqq[i] = wq[i] * q;
    wqx[i] = wq[i] * x[i];
  }
  const Real q = Sum<N>(wq);
  const Real qq = Sum<N>(wqq);
  const Real qx = Sum<N>(wqx);
  Real best_scale = 0, best_min = 0;
  const Real determinant = sums.w * qq - q * q;
  if (determinant > sums.w * qq * kLeastDeterminant) {
    best_scale = (sums.w * qx - q * sums.wx) / determinant;
    best_min = (q * qx - qq * sums.wx) / determinant;
  } else {
    best_min = -sums.wx / sums.w;  // one level for all values
  }
  if (minimum == Minimum::kNotNegative && best_min < 0) {
    best_min = 0;
    best_scale = qq > 0 ? qx / qq : 0;
  }
  if (best_scale < 0) best_scale = 0;
  AffineFit fit;
  fit.scale = static_cast<float>(best_scale);
  fit.min = static_cast<float>(best_min);
  // This is the explained part, because scale and min solve the equations above.
  fit.gain = best_scale * qx - best_min * sums.wx;
  fit.curvature = static_cast<float>(qq);
  return fit;
}

// The search tries a range of High + s steps for each s of these.
inline constexpr float kStretches[] = {-0.8f, -0.6f, -0.4f, -0.2f, 0.0f, 0.2f, 0.4f, 0.6f, 0.8f};

template <class Real, int High, int N>
static AffineFit FitAffineIn(const float* x, const float* w, Minimum minimum) {
  float low = x[0], high = x[0];
  for (int i = 1; i < N; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  if (minimum == Minimum::kNotNegative) low = std::min(low, 0.0f);
  const AffineSums<Real> sums = SumsOf<Real, N>(x, w);
  AffineFit best;
  if (high - low < kLeastEncoded) {
    best.min = -low;
    return best;
  }
  const float inverse_range = 1.0f / (high - low);
  for (const float stretch : kStretches) {
    const float inverse = (static_cast<float>(High) + stretch) * inverse_range;
    const AffineFit fit = RefitAffine<Real, High, N>(x, w, sums, minimum, inverse, -low);
    if (fit.gain > best.gain) best = fit;
  }
  for (int i = 0; i < kRefinements && best.scale > 0.0f; ++i) {
    const AffineFit fit =
        RefitAffine<Real, High, N>(x, w, sums, minimum, 1.0f / best.scale, best.min);
    if (!(fit.gain > best.gain)) break;
    best = fit;
  }
  return best;
}

template <int High, int N>
static AffineFit FitAffine(const float* x, const float* w, Minimum minimum) {
  return NeedsBinary64<N>(x, w) ? FitAffineIn<double, High, N>(x, w, minimum)
                                : FitAffineIn<float, High, N>(x, w, minimum);
}

}  // namespace trine::quant
