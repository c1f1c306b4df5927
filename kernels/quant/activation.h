// Quantises activations into blocks of 32 signed bytes. Quantised weights are multiplied with such
// blocks, and a Q8_KV cache stores them. Computes the dot product, 32 values at a time: exact
// integer sums, then three float operations.
//
//   I = scale[0] * sum(q * a over 0..15) + scale[1] * sum(q * a over 16..31)
//   M = min[0]   * sum(a over 0..15)     + min[1]   * sum(a over 16..31)
//   t = (d * d_a) * float(I) - (dmin * d_a) * float(M)
//
// abs(I) and abs(M) stay below 2^24, so their conversion is exact. A format without minimums has no
// second product; subtracting its zero changes no bit. The terms of a row are summed in eight
// classes: a block belongs to the class block index mod 8 (RowSums).
#pragma once

#include <cstdint>

#include "kernels/quant/block_types.h"
#include "kernels/quant/dequantize.h"

namespace trine::quant {

// 32 quantised activations: value i is about d * q[i].
struct ActivationBlock {
  float d;         // f32, because an f16 scale would overflow, or lose 13 bits of every term
  int32_t sum[2];  // sums of q[0..15] and q[16..31], for formats with minimums
  int8_t q[kGroupValues];
};

// Quantises 32 values. a = max abs(x); if a < 2^-50, all bytes are zero; else d = a * (1/127) and
// q = clamp(round(x * recip(d))). REQUIRES: the values of x are canonical.
void QuantizeActivation(const float* x, ActivationBlock* block);

// Quantises 32 values in the same way for a KV cache, but a block below kKvTiny becomes all zero.
void QuantizeKv(const float* x, BlockQ8_KV* block);

// A KV cache stores smaller magnitudes as zero. A probability is 0 or at least 2^-64, so the
// terms p * v of attention stay above 2^-101 and no partial sum of them can be denormal.
inline constexpr float kKvTiny = 0x1p-30f;

// The integer part of a dot product, which int8 matrix units compute in any order.
struct IntegerDot {
  int32_t i;
  int32_t m;
};
IntegerDot DotIntegers(const Group& weight, const ActivationBlock& activation);

// Computes the float part, in the order above, and returns the term t.
float BlockTerm(const Group& weight, const ActivationBlock& activation);

// The partial sums of one row. Terms are added by increasing block index, each to class b mod 8.
struct RowSums {
  float class_sum[8] = {};

  void Add(int64_t block, float term) { class_sum[block % 8] += term; }
  float Total() const;  // joins the classes: for n = 4, 2, 1: s[j] += s[j + n]
};

}  // namespace trine::quant
