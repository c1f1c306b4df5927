// Encodes the formats with one f16 scale, or a scale and a minimum, for 32 values.
#include <algorithm>
#include <cstdint>

#include "kernels/quant/encode.h"
#include "kernels/quant/encode_affine.h"
#include "kernels/quant/encode_scale.h"

namespace trine::quant {
namespace {

constexpr int kValues = kGroupValues;

// Puts value i into the low half of byte i, value i + 16 into the high half.
void PackNibbles(const uint8_t* q, uint8_t* nibbles) {
  for (int i = 0; i < 16; ++i) {
    nibbles[i] = static_cast<uint8_t>((q[i] & 15) | (q[i + 16] & 15) << 4);
  }
}

void PackFifthBits(const uint8_t* q, uint8_t* bits) {
  std::fill_n(bits, 4, uint8_t{0});
  for (int i = 0; i < kValues; ++i) {
    bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | (q[i] >> 4) << (i % 8));
  }
}

// Computes the levels, counted from 0, for a grid of integers.
template <class Grid>
void ToOffsets(const float* x, float scale, uint8_t* q) {
  float level[kValues];
  Levels<Grid, kValues>(x, InverseOrZero(scale), level);
  for (int i = 0; i < kValues; ++i) {
    q[i] = static_cast<uint8_t>(static_cast<int>(level[i]) - Grid::kLow);
  }
}

template <class Grid>
uint16_t EncodeScaled(const float* x, const float* importance, uint8_t* q) {
  Samples<kValues> samples;
  Normalize(x, importance, &samples);
  HalfScale d;
  if (!samples.zero) d = FitHalfScale<Grid, kValues>(samples.x, samples.w, samples.unit);
  ToOffsets<Grid>(samples.x, d.value, q);
  return d.bits;
}

struct HalfAffine {
  HalfScale d;
  HalfScale m;
};

template <int High>
HalfAffine FitHalfAffine(const Samples<kValues>& samples) {
  const AffineFit fit = FitAffine<High, kValues>(samples.x, samples.w, Minimum::kAny);
  HalfAffine best;
  float least = 0.0f;
  bool first = true;
  for (const HalfScale& d : Neighbours(ToHalf(fit.scale, samples.unit), samples.unit)) {
    for (const HalfScale& m : Neighbours(ToHalf(-fit.min, samples.unit), samples.unit)) {
      const float error = AffineErrorAt<High, kValues>(samples.x, samples.w, d.value, -m.value);
      if (first || error < least) best = {d, m}, least = error;
      first = false;
    }
  }
  return best;
}

template <int High, class Block>
void EncodeAffine(const float* x, const float* importance, Block* block, uint8_t* q) {
  Samples<kValues> samples;
  Normalize(x, importance, &samples);
  HalfAffine fit;
  if (!samples.zero) fit = FitHalfAffine<High>(samples);
  block->d = fit.d.bits;
  block->m = fit.m.bits;
  const float inverse = InverseOrZero(fit.d.value);
  for (int i = 0; i < kValues; ++i) {
    q[i] = static_cast<uint8_t>(NearestAbove<High>(samples.x[i], -fit.m.value, inverse));
  }
}

}  // namespace

void EncodeBlock(const float* x, const float* importance, BlockQ4_0* block) {
  uint8_t q[kValues];
  block->d = EncodeScaled<IntegerGrid<-8, 7, 2, 3, 3>>(x, importance, q);
  PackNibbles(q, block->nibbles);
}

void EncodeBlock(const float* x, const float* importance, BlockQ5_0* block) {
  uint8_t q[kValues];
  block->d = EncodeScaled<IntegerGrid<-16, 15, 2, 3, 3>>(x, importance, q);
  PackNibbles(q, block->nibbles);
  PackFifthBits(q, block->fifth_bits);
}

void EncodeBlock(const float* x, const float* importance, BlockQ4_1* block) {
  uint8_t q[kValues];
  EncodeAffine<15>(x, importance, block, q);
  PackNibbles(q, block->nibbles);
}

void EncodeBlock(const float* x, const float* importance, BlockQ5_1* block) {
  uint8_t q[kValues];
  EncodeAffine<31>(x, importance, block, q);
  PackNibbles(q, block->nibbles);
  PackFifthBits(q, block->fifth_bits);
}

// With eight bits there is nothing to search for: the largest magnitude becomes 127, and only the
// rounding of the scale is chosen.
void EncodeBlock(const float* x, const float* importance, BlockQ8_0* block) {
  using Grid = IntegerGrid<-127, 127, 1, 0, 0>;
  Samples<kValues> samples;
  Normalize(x, importance, &samples);
  HalfScale d;
  if (!samples.zero) {
    const float scale = Largest<kValues>(samples.x) / 127.0f;
    d = BestHalf<Grid, kValues>(samples.x, samples.w, scale, samples.unit);
  }
  block->d = d.bits;
  float level[kValues];
  Levels<Grid, kValues>(samples.x, InverseOrZero(d.value), level);
  for (int i = 0; i < kValues; ++i) block->q[i] = static_cast<int8_t>(level[i]);
}

}  // namespace trine::quant
