// Encodes TQ1_0 and TQ2_0: -d, 0 and d for 256 values.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/quant/encode.h"
#include "kernels/quant/encode_scale.h"

namespace trine::quant {
namespace {

using TernaryGrid = IntegerGrid<-1, 1, 1, 0, 0>;

// Returns the best d. Whatever d is, the values that do not become zero are the largest ones, so it
// tries every number of them, with the mean of their magnitudes as d.
float FitTernary(const Samples<kSuperValues>& samples) {
  int order[kSuperValues];
  for (int i = 0; i < kSuperValues; ++i) order[i] = i;
  std::sort(order, order + kSuperValues, [&](int a, int b) {
    const float left = Abs(samples.x[a]), right = Abs(samples.x[b]);
    return left != right ? left > right : a < b;
  });
  float sum = 0.0f, weight = 0.0f, best = 0.0f, most = 0.0f;
  for (const int i : order) {
    sum += samples.w[i] * Abs(samples.x[i]);
    weight += samples.w[i];
    const float mean = sum / weight;
    if (sum * mean > most) best = mean, most = sum * mean;
  }
  return best;
}

// Writes digits 0 to 2 to `q`. Returns d.
uint16_t EncodeTernary(const float* x, const float* importance, uint8_t* q) {
  Samples<kSuperValues> samples;
  Normalize(x, importance, &samples);
  HalfScale d;
  if (!samples.zero) {
    d = BestHalf<TernaryGrid, kSuperValues>(samples.x, samples.w, FitTernary(samples),
                                            samples.unit);
  }
  float level[kSuperValues];
  Levels<TernaryGrid, kSuperValues>(samples.x, InverseOrZero(d.value), level);
  for (int i = 0; i < kSuperValues; ++i) {
    q[i] = static_cast<uint8_t>(static_cast<int>(level[i]) + 1);
  }
  return d.bits;
}

// Packs base-3 digits, the first the most significant, as a fraction of 256, rounded up.
uint8_t PackDigits(const uint8_t* q, int digits, int stride) {
  int number = 0;
  for (int i = 0; i < 5; ++i) number = 3 * number + (i < digits ? q[i * stride] : 0);
  return static_cast<uint8_t>((number * 256 + 242) / 243);
}

}  // namespace

void EncodeBlock(const float* x, const float* importance, BlockTQ1_0* block) {
  uint8_t q[kSuperValues];
  block->d = EncodeTernary(x, importance, q);
  for (int i = 0; i < 32; ++i) block->five[i] = PackDigits(q + i, 5, 32);
  for (int i = 0; i < 16; ++i) block->five[32 + i] = PackDigits(q + 160 + i, 5, 16);
  for (int i = 0; i < 4; ++i) block->four[i] = PackDigits(q + 240 + i, 4, 4);
}

void EncodeBlock(const float* x, const float* importance, BlockTQ2_0* block) {
  uint8_t q[kSuperValues];
  block->d = EncodeTernary(x, importance, q);
  std::memset(block->q, 0, sizeof(block->q));
  for (int i = 0; i < kSuperValues; ++i) {
    uint8_t* byte = &block->q[32 * (i / 128) + i % 32];
    *byte = static_cast<uint8_t>(*byte | q[i] << (2 * (i / 32 % 4)));
  }
}

bool IsTernary(const float* x, int64_t values) {
  for (int64_t first = 0; first < values; first += kSuperValues) {
    const int64_t end = std::min(first + kSuperValues, values);
    float magnitude = 0.0f;
    for (int64_t i = first; i < end; ++i) {
      if (x[i] == 0.0f) continue;
      if (magnitude == 0.0f) magnitude = Abs(x[i]);
      if (Abs(x[i]) != magnitude) return false;
    }
    if (F16ToF32(F32ToF16Saturated(magnitude)) != magnitude) return false;
  }
  return true;
}

}  // namespace trine::quant
