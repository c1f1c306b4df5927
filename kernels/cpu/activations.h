// Quantised activations as the matrix kernels read them: 256 values to a chunk, so that the eight
// block scales, and the eight block sums, each fill one vector. The numbers are those of
// quant::QuantizeActivation; the last chunk of a row is filled up with zeros.

#ifndef TRINE_KERNELS_CPU_ACTIVATIONS_H_
#define TRINE_KERNELS_CPU_ACTIVATIONS_H_

#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::cpu_kernels {

// The product that reads quantised activations. A level may want another order for each.
enum class ActivationReader { kMatmul, kMoeMatmul };

// What a level's matmul reads; its moe_matmul reads rows.
enum class ActivationOrder {
  kRows,     // each row's chunks by themselves
  kPairs,    // as paired_columns.h has them, from kMinPairedRows rows on
  kRecords,  // as activation_records.h has them, from kInterleavedRows rows on
};
inline constexpr int64_t kMinPairedRows = 8;

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

// How many of a row's first `blocks` blocks are of class j: those whose index is j mod 8.
template <typename Int>
static constexpr Int BlocksOfClass(Int blocks, int j) {
  return (blocks - j + quant::kSuperGroups - 1) / quant::kSuperGroups;
}

// Few rows lie one after the other. From so many on they lie interleaved: the first chunks of 16
// rows, then their second ones. A product with many columns so reads what it needs at a time from
// one place; rows of 4096 values one after the other would all meet in a few sets of a cache.
inline constexpr int64_t kInterleavedRows = 16;

// From a row's chunk to its next, where there are `rows` of them.
static constexpr int64_t ActivationStep(int64_t rows) {
  return rows < kInterleavedRows ? 1 : kInterleavedRows;
}

// Where a row's first chunk is.
static constexpr int64_t FirstChunkOf(int64_t row, int64_t rows, int64_t k) {
  const int64_t step = ActivationStep(rows);
  return row / step * step * ActivationChunks(k) + row % step;
}

// How many chunks of memory rows take.
static constexpr int64_t ActivationChunksOf(int64_t rows, int64_t k) {
  const int64_t step = ActivationStep(rows);
  return (rows + step - 1) / step * step * ActivationChunks(k);
}

}  // namespace trine::cpu_kernels

#endif  // TRINE_KERNELS_CPU_ACTIVATIONS_H_
