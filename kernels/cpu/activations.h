// Quantised activations as the matrix kernels read them: 256 values to a chunk, so that the eight
// block scales, and the eight block sums, each fill one vector. The numbers are those of
// quant::QuantizeActivation; the last chunk of a row is filled up with zeros.

#ifndef TRINE_KERNELS_CPU_ACTIVATIONS_H_
#define TRINE_KERNELS_CPU_ACTIVATIONS_H_

#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::cpu_kernels {

struct alignas(64) ActivationChunk {
  float d[quant::kSuperGroups];
  int32_t sum[quant::kSuperGroups];          // of a block's q
  int32_t half_sum[2][quant::kSuperGroups];  // of its first 16 q, of its last 16
  int8_t q[quant::kSuperValues];
};
static_assert(sizeof(ActivationChunk) == 384);

static constexpr int64_t ActivationChunks(int64_t k) {
  return (k + quant::kSuperValues - 1) / quant::kSuperValues;
}

// What one row of k values takes.
static constexpr int64_t ActivationBytes(int64_t k) {
  return ActivationChunks(k) * static_cast<int64_t>(sizeof(ActivationChunk));
}

}  // namespace trine::cpu_kernels

#endif  // TRINE_KERNELS_CPU_ACTIVATIONS_H_
