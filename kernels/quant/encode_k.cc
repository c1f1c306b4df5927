// Q3_K and Q6_K: an f16 and a signed integer scale for each 16 of 256 values.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/quant/encode_blocks.h"
#include "kernels/quant/encode_super.h"

namespace trine::quant {
namespace {

constexpr int kParts = 16;
constexpr int kSize = kSuperValues / kParts;

// Levels from 0 up.
template <class Grid>
void ToOffsets(const Samples<kSuperValues>& samples, const SuperScales<kParts>& fit, uint8_t* q) {
  for (int part = 0; part < kParts; ++part) {
    float level[kSize];
    Levels<Grid, kSize>(samples.x + kSize * part, InverseOrZero(fit.Scale(part)), level);
    for (int i = 0; i < kSize; ++i) {
      q[kSize * part + i] = static_cast<uint8_t>(static_cast<int>(level[i]) - Grid::kLow);
    }
  }
}

// The scales of a block, and its values as offsets from the least level.
template <class Grid, class ScaleGrid>
auto Fit(const float* x, const float* importance, uint8_t* q) {
  Samples<kSuperValues> samples;
  Normalize(x, importance, &samples);
  const auto fit = FitSuperScales<Grid, ScaleGrid, kParts>(samples);
  ToOffsets<Grid>(samples, fit, q);
  return fit;
}

void Or(int bits, uint8_t* byte) { *byte = static_cast<uint8_t>(*byte | bits); }

}  // namespace

void EncodeBlock(const float* x, const float* importance, BlockQ3_K* block) {
  uint8_t q[kSuperValues];
  const auto fit =
      Fit<IntegerGrid<-4, 3, 4, 4, 6>, IntegerGrid<-32, 31, 1, 15, 1>>(x, importance, q);

  std::memset(block, 0, sizeof(*block));
  block->d = fit.d.bits;
  // Four low bits in the halves of bytes 0-7, two high bits in bytes 8-11.
  for (int part = 0; part < kParts; ++part) {
    const int scale = fit.scale[part] + 32;
    Or((scale & 15) << (4 * (part / 8)), &block->scales[part % 8]);
    Or((scale >> 4) << (2 * (part / 4)), &block->scales[8 + part % 4]);
  }
  for (int i = 0; i < kSuperValues; ++i) {
    const int group = i / 32;
    Or((q[i] & 3) << (2 * (group % 4)), &block->q[32 * (group / 4) + i % 32]);
    Or((q[i] >> 2) << group, &block->third_bits[i % 32]);
  }
}

void EncodeBlock(const float* x, const float* importance, BlockQ6_K* block) {
  uint8_t q[kSuperValues];
  const auto fit =
      Fit<IntegerGrid<-32, 31, 1, 2, 2>, IntegerGrid<-128, 127, 1, 31, 1>>(x, importance, q);

  std::memset(block, 0, sizeof(*block));
  block->d = fit.d.bits;
  for (int part = 0; part < kParts; ++part) {
    block->scales[part] = static_cast<int8_t>(fit.scale[part]);
  }
  // Of each half of 128 values, groups 0 and 1 are the low halves of 64 bytes, 2 and 3 the high.
  for (int i = 0; i < kSuperValues; ++i) {
    const int half = i / 128, group = i / 32 % 4;
    Or((q[i] & 15) << (4 * (group / 2)), &block->low[64 * half + 32 * (group % 2) + i % 32]);
    Or((q[i] >> 4) << (2 * group), &block->high[32 * half + i % 32]);
  }
}

}  // namespace trine::quant
