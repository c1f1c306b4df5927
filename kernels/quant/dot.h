// The quantised dot product, 32 values at a time: exact integer sums, then three float operations.
//
//   I = scale[0] * sum(q * a over 0..15) + scale[1] * sum(q * a over 16..31)
//   M = min[0]   * sum(a over 0..15)     + min[1]   * sum(a over 16..31)
//   t = (d * d_a) * float(I) - (dmin * d_a) * float(M)
//
// abs(I) and abs(M) stay below 2^24, so their conversion is exact. A format without minimums has no
// second product; subtracting its zero changes no bit. A row sums its terms in eight classes,
// block index mod 8: see RowSums.

#ifndef TRINE_KERNELS_QUANT_DOT_H_
#define TRINE_KERNELS_QUANT_DOT_H_

#include <cstdint>

#include "kernels/quant/activation.h"
#include "kernels/quant/block_types.h"
#include "kernels/quant/group.h"

namespace trine::quant {

// The integer part: what int8 matrix units compute, in any order.
struct IntegerDot {
  int32_t i;
  int32_t m;
};
IntegerDot DotIntegers(const Group& weight, const ActivationBlock& activation);

// The float part, in the one order.
float BlockTerm(const Group& weight, const ActivationBlock& activation);

// The partial sums of one row: terms are added by increasing block index, each to class b mod 8.
struct RowSums {
  float class_sum[8] = {};

  void Add(int64_t block, float term) { class_sum[block % 8] += term; }
  float Total() const;  // for n = 4, 2, 1: s[j] += s[j + n]
};

// abs(I) can not exceed this for the type; 0 for types that are not quantised.
int32_t LargestIntegerDot(Type type);

}  // namespace trine::quant

#endif  // TRINE_KERNELS_QUANT_DOT_H_
