// Fits x ~ scale * level, levels being those of a grid: the core of every format without minimums,
// and of the way all K formats store the scales themselves.
//
// A grid has kStarts, the levels on which the value of the largest magnitude is put to begin with,
// and Nearest, the level next to a number.

#ifndef TRINE_KERNELS_QUANT_ENCODE_SCALE_H_
#define TRINE_KERNELS_QUANT_ENCODE_SCALE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/quant/encode_samples.h"

namespace trine::quant {

// Half to even; |x| < 2^22.
static inline float RoundToFloat(float x) { return (x + 12582912.0f) - 12582912.0f; }

// The integers from kLow to kHigh. Starts at `Inside` steps of 1 / PerUnit within both ends and
// `Outside` steps beyond: a largest value that is clipped may leave the others better off.
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

// Level of every value for a scale of 1 / inverse.
template <class Grid, int N>
static inline void Levels(const float* x, float inverse, float* level) {
  for (int i = 0; i < N; ++i) level[i] = Grid::Nearest(x[i] * inverse);
}

// 0 for a scale whose inverse would be infinite: every value then gets the level 0.
static inline float InverseOrZero(float scale) {
  return Abs(scale) < 0x1p-125f ? 0.0f : 1.0f / scale;
}

// Weighted squared error when `scale` is what is stored. This and the other functions over a part's
// values are kept apart from their callers: inside a caller's loop GCC unrolls theirs before it
// could make vectors of them.
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

struct ScaleFit {
  float scale = 0.0f;
  float gain = 0.0f;       // how much of the sum of w*x*x it explains
  float curvature = 0.0f;  // sum of w*level*level: what a change of the scale costs
};

// The best scale for the levels that 1 / inverse gives.
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

// The best scale found. x is normalised, or smaller.
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

// An f16 and its value in normalised terms.
struct HalfScale {
  uint16_t bits = 0;
  float value = 0.0f;
};

// A zero is stored without a sign, so that no result depends on what compilers make of -0.
static inline HalfScale FromHalf(uint16_t bits, float unit) {
  if ((bits & 0x7fffu) == 0) bits = 0;
  return {bits, F16ToF32(bits) * unit};
}

static inline HalfScale ToHalf(float value, float unit) {
  return FromHalf(F32ToF16Saturated(value / unit), unit);
}

// `half` and the f16 numbers next to it: rounding the best scale need not give the best f16, least
// of all among denormal ones, which are far apart.
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

// The f16 near `scale` with the least error.
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

#endif  // TRINE_KERNELS_QUANT_ENCODE_SCALE_H_
