// The formats whose levels are no integers: IQ4_NL and IQ4_XS with 16 levels of their own, MXFP4
// with four-bit floats and a power of two as scale.
#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/quant/encode_blocks.h"
#include "kernels/quant/encode_super.h"

namespace trine::quant {
namespace {

constexpr int kValues = kGroupValues;

// The level next to x, for levels in ascending order: starts at the least and takes a step for each
// midpoint x is above. Without branches, so that vectors do it.
template <size_t N>
float NearestOf(const std::array<float, N>& levels, float x) {
  float level = levels[0];
  for (size_t i = 1; i < N; ++i) {
    const float midpoint = (levels[i - 1] + levels[i]) * 0.5f;
    level += x > midpoint ? levels[i] - levels[i - 1] : 0.0f;
  }
  return level;
}

constexpr std::array<float, 16> Iq4Levels() {
  std::array<float, 16> levels{};
  for (size_t i = 0; i < 16; ++i) levels[i] = kIq4Values[i];
  return levels;
}

struct Iq4Grid {
  static constexpr auto kLevels = Iq4Levels();
  // Both ends, the levels beside them, and what clips the largest value.
  static constexpr std::array<float, 14> kStarts = {-104, -115, -121, -127, -133, -140, -148,
                                                    89,   101,  107,  113,  119,  126,  134};
  static float Nearest(float x) { return NearestOf(kLevels, x); }
};

// Magnitudes of MXFP4: the first eight codes.
struct Mxfp4Grid {
  static constexpr std::array<float, 8> kLevels = {0, 1, 2, 3, 4, 6, 8, 12};
  static float Nearest(float x) {
    const float level = NearestOf(kLevels, Abs(x));
    return x < 0.0f ? -level : level;
  }
};

uint8_t CodeOf(const int8_t* values, float level) {
  return static_cast<uint8_t>(std::find(values, values + 16, static_cast<int>(level)) - values);
}

template <class Grid>
void PackCodes(const float* x, float scale, const int8_t* values, uint8_t* nibbles) {
  float level[kValues];
  Levels<Grid, kValues>(x, InverseOrZero(scale), level);
  for (int i = 0; i < 16; ++i) {
    nibbles[i] =
        static_cast<uint8_t>(CodeOf(values, level[i]) | CodeOf(values, level[i + 16]) << 4);
  }
}

}  // namespace

void EncodeBlock(const float* x, const float* importance, BlockIQ4_NL* block) {
  Samples<kValues> samples;
  Normalize(x, importance, &samples);
  HalfScale d;
  if (!samples.zero) d = FitHalfScale<Iq4Grid, kValues>(samples.x, samples.w, samples.unit);
  block->d = d.bits;
  PackCodes<Iq4Grid>(samples.x, d.value, kIq4Values, block->nibbles);
}

void EncodeBlock(const float* x, const float* importance, BlockIQ4_XS* block) {
  constexpr int kParts = kSuperValues / kValues;
  Samples<kSuperValues> samples;
  Normalize(x, importance, &samples);
  using ScaleGrid = IntegerGrid<-32, 31, 1, 15, 1>;
  const SuperScales<kParts> fit = FitSuperScales<Iq4Grid, ScaleGrid, kParts>(samples);
  block->d = fit.d.bits;
  block->scales_high = 0;
  std::fill_n(block->scales_low, 4, uint8_t{0});
  for (int part = 0; part < kParts; ++part) {
    const int scale = fit.scale[part] + 32;
    block->scales_low[part / 2] =
        static_cast<uint8_t>(block->scales_low[part / 2] | (scale & 15) << (4 * (part % 2)));
    block->scales_high = static_cast<uint16_t>(block->scales_high | (scale >> 4) << (2 * part));
    PackCodes<Iq4Grid>(samples.x + kValues * part, fit.Scale(part), kIq4Values,
                       block->q + 16 * part);
  }
}

// Powers of two are few: all that could be the best are tried.
void EncodeBlock(const float* x, const float* importance, BlockMXFP4* block) {
  Samples<kValues> samples;
  Normalize(x, importance, &samples);
  // A normalised largest value of 1 to 4 is 12 or 8 steps of 2^-4 to 2^-1; 2^0 stands for values
  // near the least exponent, where the steps below are not to be had.
  const int unit_exponent = static_cast<int>(Bits(samples.unit) >> 23) - 127;
  int best = kMxfp4MinExponent;
  float least = 0.0f;
  bool first = true;
  for (int step = -4; step <= 0 && !samples.zero; ++step) {
    const int exponent = std::clamp(step - unit_exponent, kMxfp4MinExponent, kMxfp4MaxExponent);
    const float scale = PowerOfTwo(std::max(exponent + unit_exponent, -126));
    const float error = ErrorAt<Mxfp4Grid, kValues>(samples.x, samples.w, scale);
    if (first || error < least) best = exponent, least = error;
    first = false;
  }
  block->e = static_cast<uint8_t>(best + 128);
  const float scale = PowerOfTwo(std::max(best + unit_exponent, -126));
  PackCodes<Mxfp4Grid>(samples.x, samples.zero ? 0.0f : scale, kMxfp4Values, block->nibbles);
}

}  // namespace trine::quant
