// Encodes the formats whose levels are not consecutive integers: IQ4_NL and IQ4_XS with a table of
// 16 levels, MXFP4 with four-bit floats and a power of two as scale.
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kernels/quant/encode.h"
#include "kernels/quant/encode_scale.h"
#include "kernels/quant/encode_super.h"

namespace trine::quant {
namespace {

constexpr int kValues = kGroupValues;

// Returns the level nearest to x, for ascending levels: starts at the least and takes a step for
// each midpoint that x is above. Written without branches, so that it is vectorised.
template <class Grid, size_t... I>
float NearestOf(float x, std::index_sequence<I...>) {
  constexpr auto& kLevels = Grid::kLevels;
  return ((x > (kLevels[I] + kLevels[I + 1]) * 0.5f ? kLevels[I + 1] - kLevels[I] : 0.0f) + ... +
          kLevels[0]);
}

constexpr std::array<float, 16> Iq4Levels() {
  std::array<float, 16> levels{};
  for (size_t i = 0; i < 16; ++i) levels[i] = kIq4Values[i];
  return levels;
}

struct Iq4Grid {
  static constexpr auto kLevels = Iq4Levels();
  // Both ends, the levels next to them, and levels beyond that clip the largest value.
  static constexpr std::array<float, 10> kStarts = {-104, -117, -127, -134, -142,
                                                    89,   103,  113,  120,  128};
  static float Nearest(float x) { return NearestOf<Iq4Grid>(x, std::make_index_sequence<15>()); }
};

// The magnitudes of MXFP4, which are the first eight codes.
struct Mxfp4Grid {
  static constexpr std::array<float, 8> kLevels = {0, 1, 2, 3, 4, 6, 8, 12};
  static float Nearest(float x) {
    const float level = NearestOf<Mxfp4Grid>(Abs(x), std::make_index_sequence<7>());
    return x < 0.0f ? -level : level;
  }
};

// Returns the code of every level that a nibble can stand for, by level + 128.
constexpr std::array<uint8_t, 256> CodesOf(const int8_t (&values)[16]) {
  std::array<uint8_t, 256> codes{};
  for (int code = 15; code >= 0; --code) {  // backwards: equal levels get the lowest code
    codes[static_cast<size_t>(values[code] + 128)] = static_cast<uint8_t>(code);
  }
  return codes;
}
constexpr std::array<uint8_t, 256> kIq4Codes = CodesOf(kIq4Values);
constexpr std::array<uint8_t, 256> kMxfp4Codes = CodesOf(kMxfp4Values);

template <class Grid>
void PackCodes(const float* x, float scale, const std::array<uint8_t, 256>& codes,
               uint8_t* nibbles) {
  float level[kValues];
  Levels<Grid, kValues>(x, InverseOrZero(scale), level);
  uint8_t code[kValues];
  for (int i = 0; i < kValues; ++i) code[i] = codes[static_cast<size_t>(level[i] + 128.0f)];
  for (int i = 0; i < 16; ++i) nibbles[i] = static_cast<uint8_t>(code[i] | code[i + 16] << 4);
}

}  // namespace

void EncodeBlock(const float* x, const float* importance, BlockIQ4_NL* block) {
  Samples<kValues> samples;
  Normalize(x, importance, &samples);
  HalfScale d;
  if (!samples.zero) d = FitHalfScale<Iq4Grid, kValues>(samples.x, samples.w, samples.unit);
  block->d = d.bits;
  PackCodes<Iq4Grid>(samples.x, d.value, kIq4Codes, block->nibbles);
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
    PackCodes<Iq4Grid>(samples.x + kValues * part, fit.Scale(part), kIq4Codes,
                       block->q + 16 * part);
  }
}

// Tries all powers of two that could be the best, because there are few.
void EncodeBlock(const float* x, const float* importance, BlockMXFP4* block) {
  Samples<kValues> samples;
  Normalize(x, importance, &samples);
  // A normalised largest value of 1 to 4 is 12 or 8 steps of 2^-4 to 2^-1. 2^0 is for values near
  // the least exponent, where smaller steps do not exist.
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
  PackCodes<Mxfp4Grid>(samples.x, samples.zero ? 0.0f : scale, kMxfp4Codes, block->nibbles);
}

}  // namespace trine::quant
