// Encodes the K types. Q3_K and Q6_K: an f16 for 256 values, and a signed integer scale for each 16
// of them. Q2_K, Q4_K and Q5_K: two f16 for 256 values, an integer scale and minimum for each part.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/quant/encode.h"
#include "kernels/quant/encode_affine.h"
#include "kernels/quant/encode_scale.h"
#include "kernels/quant/encode_super.h"

namespace trine::quant {
namespace {

constexpr int kParts = 16;
constexpr int kSize = kSuperValues / kParts;

// Computes the levels, counted from 0.
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

// Returns the scales of a block, and writes its values as offsets from the least level.
template <class Grid, class ScaleGrid>
auto Fit(const float* x, const float* importance, uint8_t* q) {
  Samples<kSuperValues> samples;
  Normalize(x, importance, &samples);
  const auto fit = FitSuperScales<Grid, ScaleGrid, kParts>(samples);
  ToOffsets<Grid>(samples, fit, q);
  return fit;
}

// Fits a format: Parts of 256 / Parts values, q up to High, scales and minimums up to MostScale.
template <int Parts, int High, int MostScale>
class MinFit {
 public:
  static constexpr int kSize = kSuperValues / Parts;

  explicit MinFit(const Samples<kSuperValues>& samples) : samples_(samples) {
    if (!samples.zero) Fit();
  }

  uint16_t d() const { return best_.d.bits; }
  uint16_t dmin() const { return best_.dmin.bits; }
  int scale(int part) const { return best_.scale[part]; }
  int min(int part) const { return best_.min[part]; }

  void Write(uint8_t* q) const {
    for (int i = 0; i < kSuperValues; ++i) {
      const int part = i / kSize;
      q[i] = static_cast<uint8_t>(
          NearestAbove<High>(samples_.x[i], best_.Min(part), InverseOrZero(best_.Scale(part))));
    }
  }

 private:
  // Starts go down to half of the range: below that the same scales would repeat, doubled.
  using ScaleGrid = IntegerGrid<0, MostScale, 1, MostScale / 2, 1>;

  struct Choice {
    HalfScale d, dmin;
    int scale[Parts] = {};
    int min[Parts] = {};

    float Scale(int part) const { return d.value * static_cast<float>(scale[part]); }
    float Min(int part) const { return dmin.value * static_cast<float>(min[part]); }
  };

  const float* X(int part) const { return samples_.x + kSize * part; }
  const float* W(int part) const { return samples_.w + kSize * part; }

  void Fit() {
    float curvature[Parts], weight[Parts];
    for (int part = 0; part < Parts; ++part) {
      const AffineFit one = FitAffine<High, kSize>(X(part), W(part), Minimum::kNotNegative);
      wanted_scale_[part] = one.scale;
      wanted_min_[part] = one.min;
      curvature[part] = one.curvature;
      weight[part] = SumsOf<float, kSize>(X(part), W(part)).w;
    }
    best_.d = FitHalfScale<ScaleGrid, Parts>(wanted_scale_, curvature, samples_.unit);
    best_.dmin = FitHalfScale<ScaleGrid, Parts>(wanted_min_, weight, samples_.unit);
    const bool binary64 = NeedsBinary64<kSuperValues>(samples_.x, samples_.w);
    float least = Choose(&best_);
    for (int i = 0; i < kRefinements; ++i) {
      Choice next = best_;
      binary64 ? Refit<double>(&next) : Refit<float>(&next);
      if (next.d.bits == best_.d.bits && next.dmin.bits == best_.dmin.bits) break;
      const float error = Choose(&next);
      if (!(error < least)) break;
      best_ = next, least = error;
    }
  }

  // Chooses for every part the integers near the wanted scale and minimum with the least error.
  // Returns the sum of the errors.
  float Choose(Choice* choice) const {
    float total = 0.0f;
    for (int part = 0; part < Parts; ++part) {
      const int scale = Nearest(wanted_scale_[part], choice->d.value);
      const int min = Nearest(wanted_min_[part], choice->dmin.value);
      float least = 0.0f;
      bool first = true;
      for (int s = std::max(scale - 1, 0); s <= std::min(scale + 1, MostScale); ++s) {
        for (int m = std::max(min - 1, 0); m <= std::min(min + 1, MostScale); ++m) {
          const float error =
              AffineErrorAt<High, kSize>(X(part), W(part), choice->d.value * static_cast<float>(s),
                                         choice->dmin.value * static_cast<float>(m));
          if (first || error < least) {
            choice->scale[part] = s;
            choice->min[part] = m;
            least = error;
          }
          first = false;
        }
      }
      total += least;
    }
    return total;
  }

  static int Nearest(float wanted, float unit) {
    return static_cast<int>(ScaleGrid::Nearest(wanted * InverseOrZero(unit)));
  }

  // Sets the best d and dmin for the chosen integers: solves two equations over all 256 values.
  template <class Real>
  void Refit(Choice* choice) const {
    Real ss = 0, sm = 0, mm = 0, sx = 0, mx = 0;
    for (int part = 0; part < Parts; ++part) {
      const Real scale = static_cast<Real>(choice->scale[part]);
      const Real min = static_cast<Real>(choice->min[part]);
      const float inverse = InverseOrZero(choice->Scale(part));
      Real wq[kSize], wqq[kSize], wqx[kSize];
      for (int i = 0; i < kSize; ++i) {
        const Real q = NearestAbove<High>(X(part)[i], choice->Min(part), inverse);
        wq[i] = W(part)[i] * q;
        wqq[i] = wq[i] * q;
        wqx[i] = wq[i] * X(part)[i];
      }
      const AffineSums<Real> sums = SumsOf<Real, kSize>(X(part), W(part));
      ss += scale * scale * Sum<kSize>(wqq);
      sm += scale * min * Sum<kSize>(wq);
      mm += min * min * sums.w;
      sx += scale * Sum<kSize>(wqx);
      mx += min * sums.wx;
    }
    const Real determinant = ss * mm - sm * sm;
    Real d = ss > 0 ? sx / ss : 0;
    Real dmin = 0;
    if (determinant > ss * mm * kLeastDeterminant) {
      d = (sx * mm - sm * mx) / determinant;
      dmin = (sx * sm - ss * mx) / determinant;
    } else if (mm > 0) {
      dmin = -mx / mm;
    }
    choice->d = ToHalf(static_cast<float>(d > 0 ? d : 0), samples_.unit);
    choice->dmin = ToHalf(static_cast<float>(dmin > 0 ? dmin : 0), samples_.unit);
  }

  const Samples<kSuperValues>& samples_;
  float wanted_scale_[Parts] = {};
  float wanted_min_[Parts] = {};
  Choice best_;
};

void Or(int bits, uint8_t* byte) { *byte = static_cast<uint8_t>(*byte | bits); }

// The first four scales and minimums are whole, in bytes 0-3 and 4-7. Of the last four, bytes 8-11
// hold the low halves, and the spare top bits of the first eight bytes hold the rest.
template <class Fit>
void PackScales(const Fit& fit, uint8_t* scales) {
  for (int part = 0; part < 4; ++part) {
    Or(fit.scale(part), &scales[part]);
    Or(fit.min(part), &scales[part + 4]);
  }
  for (int part = 4; part < 8; ++part) {
    Or(fit.scale(part) & 15, &scales[part + 4]);
    Or((fit.min(part) & 15) << 4, &scales[part + 4]);
    Or((fit.scale(part) >> 4) << 6, &scales[part - 4]);
    Or((fit.min(part) >> 4) << 6, &scales[part]);
  }
}

// Encodes what Q4_K and Q5_K have in common: everything but the fifth bits.
template <int High, class Block>
void EncodeWithSixBitScales(const float* x, const float* importance, Block* block, uint8_t* q) {
  Samples<kSuperValues> samples;
  Normalize(x, importance, &samples);
  const MinFit<8, High, 63> fit(samples);
  fit.Write(q);
  std::memset(block, 0, sizeof(*block));
  block->d = fit.d();
  block->dmin = fit.dmin();
  PackScales(fit, block->scales);
  for (int i = 0; i < kSuperValues; ++i) {
    Or((q[i] & 15) << (4 * (i / 32 % 2)), &block->q[32 * (i / 64) + i % 32]);
  }
}

}  // namespace

void EncodeBlock(const float* x, const float* importance, BlockQ3_K* block) {
  uint8_t q[kSuperValues];
  const auto fit =
      Fit<IntegerGrid<-4, 3, 4, 4, 6>, IntegerGrid<-32, 31, 1, 15, 1>>(x, importance, q);

  std::memset(block, 0, sizeof(*block));
  block->d = fit.d.bits;
  // The four low bits go to the halves of bytes 0-7, the two high bits to bytes 8-11.
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
  // In each half of 128 values, groups 0 and 1 are the low halves of 64 bytes, 2 and 3 the high.
  for (int i = 0; i < kSuperValues; ++i) {
    const int half = i / 128, group = i / 32 % 4;
    Or((q[i] & 15) << (4 * (group / 2)), &block->low[64 * half + 32 * (group % 2) + i % 32]);
    Or((q[i] >> 4) << (2 * group), &block->high[32 * half + i % 32]);
  }
}

void EncodeBlock(const float* x, const float* importance, BlockQ4_K* block) {
  uint8_t q[kSuperValues];
  EncodeWithSixBitScales<15>(x, importance, block, q);
}

void EncodeBlock(const float* x, const float* importance, BlockQ5_K* block) {
  uint8_t q[kSuperValues];
  EncodeWithSixBitScales<31>(x, importance, block, q);
  for (int i = 0; i < kSuperValues; ++i) {
    Or((q[i] >> 4) << (i / 32), &block->fifth_bits[i % 32]);
  }
}

void EncodeBlock(const float* x, const float* importance, BlockQ2_K* block) {
  Samples<kSuperValues> samples;
  Normalize(x, importance, &samples);
  const MinFit<16, 3, 15> fit(samples);
  uint8_t q[kSuperValues];
  fit.Write(q);
  std::memset(block, 0, sizeof(*block));
  block->d = fit.d();
  block->dmin = fit.dmin();
  for (int part = 0; part < 16; ++part) {
    block->scales[part] = static_cast<uint8_t>(fit.scale(part) | fit.min(part) << 4);
  }
  for (int i = 0; i < kSuperValues; ++i) {
    Or(q[i] << (2 * (i / 32 % 4)), &block->q[32 * (i / 128) + i % 32]);
  }
}

}  // namespace trine::quant
