#include "kernels/quant/activation.h"

#include <algorithm>

#include "kernels/quant/scalar.h"

namespace trine::quant {
namespace {

constexpr float kOneOver127 = 0x1.020408p-7f;  // 3C010204, 1/127 rounded

// Returns the scale, or 0 if no magnitude reaches `tiny`.
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

// Returns 32 times the product of the largest scale, weight and activation magnitudes.
constexpr int32_t Bound(int32_t scale, int32_t q) { return 32 * scale * q * 127; }

constexpr int32_t kExact = 1 << 24;      // all integers up to this are exact in binary32
static_assert(Bound(1, 128) < kExact);   // Q8_0, whose files may hold -128
static_assert(Bound(63, 31) < kExact);   // Q5_K, the largest with unsigned scales
static_assert(Bound(128, 32) < kExact);  // Q6_K: 16,646,144
static_assert(Bound(32, 127) < kExact);  // IQ4_XS: 16,516,096
static_assert(Bound(63, 1) < kExact);    // M of Q4_K and Q5_K

}  // namespace

void QuantizeActivation(const float* x, ActivationBlock* block) {
  block->d = Quantize(x, kTiny, block->q);
  block->sum[0] = block->sum[1] = 0;
  for (int i = 0; i < kGroupValues; ++i) block->sum[i / 16] += block->q[i];
}

void QuantizeKv(const float* x, BlockQ8_KV* block) { block->d = Quantize(x, kKvTiny, block->q); }

IntegerDot DotIntegers(const Group& weight, const ActivationBlock& activation) {
  // Reads both factors through int8_t*: GCC 12.2 vectorises a product with a cast in the loop as if
  // it were unsigned (VNNI).
  const int8_t* q = weight.q;
  const int8_t* a = activation.q;
  int32_t half[2] = {0, 0};
  for (int i = 0; i < 16; ++i) half[0] += q[i] * a[i];
  for (int i = 16; i < 32; ++i) half[1] += q[i] * a[i];
  return {weight.scale[0] * half[0] + weight.scale[1] * half[1],
          weight.min[0] * activation.sum[0] + weight.min[1] * activation.sum[1]};
}

float BlockTerm(const Group& weight, const ActivationBlock& activation) {
  const IntegerDot dot = DotIntegers(weight, activation);
  const float scaled = (weight.d * activation.d) * static_cast<float>(dot.i);
  const float minimum = (weight.dmin * activation.d) * static_cast<float>(dot.m);
  return scaled - minimum;
}

float RowSums::Total() const {
  const float* s = class_sum;
  const float even = (s[0] + s[4]) + (s[2] + s[6]);
  const float odd = (s[1] + s[5]) + (s[3] + s[7]);
  return even + odd;
}

}  // namespace trine::quant
