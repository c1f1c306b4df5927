// Activations as blocks of 32 signed bytes: what a quantised weight is multiplied with, and what a
// Q8_KV cache stores.

#ifndef TRINE_KERNELS_QUANT_ACTIVATION_H_
#define TRINE_KERNELS_QUANT_ACTIVATION_H_

#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::quant {

struct ActivationBlock {
  float d;         // f32: an f16 scale would overflow, or lose 13 bits of every term
  int32_t sum[2];  // of q[0..15] and of q[16..31], for formats with minimums
  int8_t q[kGroupValues];
};

// a = max abs(x);  a < 2^-50: all zero;  else d = a * (1/127), q = clamp(round(x * recip(d))).
// The values of x are canonical.
void QuantizeActivation(const float* x, ActivationBlock* block);

// The same, for storing: a block below kKvTiny becomes all zero.
void QuantizeKv(const float* x, BlockQ8_KV* block);

// Magnitudes below this are stored in a KV cache as zero. A probability is 0 or at least 2^-64, so
// the terms p * v of attention stay above 2^-101 and no partial sum of them can be denormal.
inline constexpr float kKvTiny = 0x1p-30f;

}  // namespace trine::quant

#endif  // TRINE_KERNELS_QUANT_ACTIVATION_H_
