// Weight rows times columns of activations: the core of Matmul and MoeMatmul.

#ifndef TRINE_KERNELS_CPU_DOT_COLUMNS_H_
#define TRINE_KERNELS_CPU_DOT_COLUMNS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/kernel_table.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {

struct WeightRows {
  quant::Type type;
  const std::byte* data;  // row 0
  int64_t stride;         // bytes from row to row, or from group to group
  bool packed;
  int64_t k;          // values in a row
  const float* bias;  // by row, or null
};

// The most columns that are multiplied with a tile of weights before the next is unpacked.
constexpr int kMaxColumns = 64;

// As many of them as stay in half of a second-level cache with what a tile of weights meets of
// them, at least 32.
int ColumnsInReach(const Caches& caches);

struct Columns {
  int count = 0;
  bool paired = false;  // as paired_columns.h has them
  int64_t step = 1;     // from a column's chunk to its next
  Tuning tuning;
  const ActivationChunk* chunks[kMaxColumns];  // for quantised weights
  const float* x[kMaxColumns];                 // for the others
  float* y[kMaxColumns];
};

// Whether the weights are put into tiles for them: as the product was told, or from `usual` columns
// on. A single column meets none.
inline bool GoByTiles(const Columns& columns, int usual) {
  if (columns.count == 1) return false;
  const Way way = columns.tuning.way;
  return way == Way::kUsual ? columns.count >= usual : way == Way::kTiles;
}

// y[c][r] = canon(dot(row r, column c)), or canon(canon(dot) + bias[r]), for r in `rows`.
void DotColumns(const WeightRows& weights, const Columns& columns, Range rows);

// The same for the types of one kind.
void DotQuantizedColumns(const WeightRows& weights, const Columns& columns, Range rows);
void DotPackedColumns(const WeightRows& weights, const Columns& columns, Range rows);
void DotFloatColumns(const WeightRows& weights, const Columns& columns, Range rows);

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_DOT_COLUMNS_H_
