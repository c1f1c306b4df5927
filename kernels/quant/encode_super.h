// Fits blocks of 256 values without minimums. A block has an f16 scale, and each part of it has an
// integer scale.
#pragma once

#include <algorithm>

#include "kernels/quant/block_types.h"
#include "kernels/quant/encode_scale.h"

namespace trine::quant {

template <int Parts>
struct SuperScales {
  HalfScale d;
  int scale[Parts] = {};

  float Scale(int part) const { return d.value * static_cast<float>(scale[part]); }
};

// Chooses for each part the integer scale near wanted / d with the least error. Returns the total
// error.
template <class Grid, class ScaleGrid, int Parts>
static float ChooseScales(const Samples<kSuperValues>& samples, const float* wanted,
                          SuperScales<Parts>* fit) {
  constexpr int kSize = kSuperValues / Parts;
  const float inverse = InverseOrZero(fit->d.value);
  float total = 0.0f;
  for (int part = 0; part < Parts; ++part) {
    const float* x = samples.x + kSize * part;
    const float* w = samples.w + kSize * part;
    const int nearest = static_cast<int>(ScaleGrid::Nearest(wanted[part] * inverse));
    const int first = std::max(nearest - 1, ScaleGrid::kLow);
    const int last = std::min(nearest + 1, ScaleGrid::kHigh);
    float least = 0.0f;
    for (int scale = first; scale <= last; ++scale) {
      const float error = ErrorAt<Grid, kSize>(x, w, fit->d.value * static_cast<float>(scale));
      if (scale == first || error < least) fit->scale[part] = scale, least = error;
    }
    total += least;
  }
  return total;
}

// Returns the best d for the chosen integer scales and the levels that they give.
template <class Grid, int Parts>
static float RefitSuperScale(const Samples<kSuperValues>& samples, const SuperScales<Parts>& fit) {
  constexpr int kSize = kSuperValues / Parts;
  float cross = 0.0f, curvature = 0.0f;
  for (int part = 0; part < Parts; ++part) {
    const float scale = static_cast<float>(fit.scale[part]);
    const ScaleFit one = RefitScale<Grid, kSize>(samples.x + kSize * part, samples.w + kSize * part,
                                                 InverseOrZero(fit.Scale(part)));
    cross += one.scale * one.curvature * scale;
    curvature += one.curvature * scale * scale;
  }
  return curvature > 0.0f ? cross / curvature : fit.d.value;
}

template <class Grid, class ScaleGrid, int Parts>
static SuperScales<Parts> FitSuperScales(const Samples<kSuperValues>& samples) {
  constexpr int kSize = kSuperValues / Parts;
  SuperScales<Parts> best;
  if (samples.zero) return best;
  float wanted[Parts], curvature[Parts];
  for (int part = 0; part < Parts; ++part) {
    const ScaleFit one = FitScale<Grid, kSize>(samples.x + kSize * part, samples.w + kSize * part);
    wanted[part] = one.scale;
    curvature[part] = one.curvature;
  }
  best.d = FitHalfScale<ScaleGrid, Parts>(wanted, curvature, samples.unit);
  float least = ChooseScales<Grid, ScaleGrid, Parts>(samples, wanted, &best);
  for (int i = 0; i < kRefinements; ++i) {
    SuperScales<Parts> next;
    next.d = ToHalf(RefitSuperScale<Grid, Parts>(samples, best), samples.unit);
    if (next.d.bits == best.d.bits) break;
    const float error = ChooseScales<Grid, ScaleGrid, Parts>(samples, wanted, &next);
    if (!(error < least)) break;
    best = next, least = error;
  }
  return best;
}

}  // namespace trine::quant
