// Quantised activations as the matrix kernels read them: in chunks of 256 values, so that the eight
// block scales fill one vector, and the eight block sums another. The numbers are those of
// quant::QuantizeActivation; the last chunk of a row is filled up with zeros.

#pragma once

#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::cpu_kernels {

// The product that reads quantised activations. A level may use a different order for each.
enum class ActivationReader { kMatmul, kMoeMatmul };

// The order in which a level's matmul reads activations; its moe_matmul reads rows.
enum class ActivationOrder {
  kRows,     // each row's chunks by themselves
  kPairs,    // kMinPairedRows rows or more: in pairs (paired_columns.h)
  kRecords,  // kInterleavedRows rows or more: in records (activation_records.h)
};
inline constexpr int64_t kMinPairedRows = 8;

struct alignas(64) ActivationChunk {
  float d[quant::kSuperGroups];
  int32_t sum[quant::kSuperGroups];          // the sums of each block's q
  int32_t half_sum[2][quant::kSuperGroups];  // the sums of its first 16 q, and of its last 16
  int8_t q[quant::kSuperValues];
};
static_assert(sizeof(ActivationChunk) == 384);

static constexpr int64_t ActivationChunks(int64_t k) {
  return (k + quant::kSuperValues - 1) / quant::kSuperValues;
}

// Returns the number of blocks of class j, whose index is j mod 8, among a row's first `blocks`.
template <typename Int>
static constexpr Int BlocksOfClass(Int blocks, int j) {
  return (blocks - j + quant::kSuperGroups - 1) / quant::kSuperGroups;
}

// If there are this many rows or more, groups of this many rows are interleaved: the first chunks
// of 16 rows, then their second chunks, and so on. So a product with many columns reads from one
// place. Otherwise long rows would compete for a few sets of a cache. Fewer rows lie one after the
// other.
inline constexpr int64_t kInterleavedRows = 16;

// Returns the distance from a row's chunk to its next one, in chunks, if there are `rows` rows.
static constexpr int64_t ActivationStep(int64_t rows) {
  return rows < kInterleavedRows ? 1 : kInterleavedRows;
}

// Returns the index of a row's first chunk.
static constexpr int64_t FirstChunkOf(int64_t row, int64_t rows, int64_t k) {
  const int64_t step = ActivationStep(rows);
  return row / step * step * ActivationChunks(k) + row % step;
}

// Returns the number of chunks of memory that `rows` rows take.
static constexpr int64_t ActivationChunksOf(int64_t rows, int64_t k) {
  const int64_t step = ActivationStep(rows);
  return (rows + step - 1) / step * step * ActivationChunks(k);
}

}  // namespace trine::cpu_kernels
