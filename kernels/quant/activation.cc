#include "kernels/quant/activation.h"

#include <algorithm>

#include "kernels/quant/scalar.h"

namespace trine::quant {
namespace {

constexpr float kOneOver127 = 0x1.020408p-7f;  // 3C010204, 1/127 rounded

// Returns the scale; 0 when no magnitude reaches `tiny`.
float Quantize(const float* x, float tiny, int8_t* q) {
  float largest = 0.0f;
  for (int i = 0; i < kGroupValues; ++i) largest = std::max(largest, Abs(x[i]));
  if (largest < tiny) {
    std::fill_n(q, kGroupValues, int8_t{0});
    return 0.0f;
  }
  const float d = largest * kOneOver127;
  const float inverse = Recip(d);
  for (int i = 0; i < kGroupValues; ++i) {
    q[i] = static_cast<int8_t>(std::clamp(Round(x[i] * inverse), -127, 127));
  }
  return d;
}

}  // namespace

void QuantizeActivation(const float* x, ActivationBlock* block) {
  block->d = Quantize(x, kTiny, block->q);
  block->sum[0] = block->sum[1] = 0;
  for (int i = 0; i < kGroupValues; ++i) block->sum[i / 16] += block->q[i];
}

void QuantizeKv(const float* x, BlockQ8_KV* block) { block->d = Quantize(x, kKvTiny, block->q); }

}  // namespace trine::quant
