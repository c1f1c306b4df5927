#include "kernels/quant/encode.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/quant/encode_affine.h"
#include "kernels/quant/encode_scale.h"
#include "kernels/quant/float_bits.h"
#include "kernels/quant/validate.h"

namespace trine::quant {
namespace {

template <class Block>
void EncodeBlocks(Type type, const float* x, int64_t values, const float* importance, void* out) {
  const int64_t block_values = Traits(type).block_values;
  auto* blocks = static_cast<Block*>(out);
  for (int64_t at = 0; at < values; at += block_values) {
    EncodeBlock(x + at, importance != nullptr ? importance + at : nullptr, blocks++);
  }
}

// Returns the largest bf16 for a value that would round to infinity.
uint16_t F32ToBf16Saturated(float x) {
  const uint16_t half = F32ToBf16(x);
  return (half & 0x7fffu) == 0x7f80u ? static_cast<uint16_t>(half - 1) : half;
}

bool IsWeight(const float* importance, int64_t values) {
  if (importance == nullptr) return true;
  return RowIsFinite(Type::kF32, importance, values) &&
         std::none_of(importance, importance + values, [](float i) { return i < 0.0f; });
}

// Encodes the formats with one f16 scale, or a scale and a minimum, for 32 values.
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

bool CanEncode(Type type) {
  return Traits(type).block_bytes != 0 && type != Type::kI32 && type != Type::kQ8_KV;
}

bool EncodeRow(Type type, const float* x, int64_t values, const float* importance, void* out) {
  uint64_t bytes = 0;
  if (!CanEncode(type) || !RowBytes(type, values, &bytes)) return false;
  if (!RowIsFinite(Type::kF32, x, values) || !IsWeight(importance, values)) return false;
  switch (type) {
    case Type::kF32:
      std::copy_n(x, values, static_cast<float*>(out));
      break;
    case Type::kF16:
      std::transform(x, x + values, static_cast<uint16_t*>(out), F32ToF16Saturated);
      break;
    case Type::kBF16:
      std::transform(x, x + values, static_cast<uint16_t*>(out), F32ToBf16Saturated);
      break;
    default:
      return WithBlocks(type, [&](auto blocks) {
        using Block = typename decltype(blocks)::Block;
        if constexpr (!std::is_same_v<Block, BlockQ8_KV>) {
          EncodeBlocks<Block>(type, x, values, importance, out);
        }
      });
  }
  return true;
}

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
