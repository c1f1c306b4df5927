// Weight rows times columns of activations: the core of Matmul and MoeMatmul.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/levels/kernel_table.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {

struct WeightRows {
  quant::Type type;
  const std::byte* data;  // row 0
  int64_t stride;         // bytes from row to row, or from group to group
  bool packed;
  int64_t k;          // the number of values in a row
  const float* bias;  // by row, or null
};

// The most columns that are multiplied with a tile of weights before the next tile is unpacked.
constexpr int kMaxColumns = 64;

// Returns how many columns to multiply with a tile before the next tile is unpacked: 32 to
// kMaxColumns. The chunks of these columns that one tile needs then fit in half of a second-level
// cache.
int ColumnsInReach(const Caches& caches);

struct Columns {
  int count = 0;
  bool paired = false;  // in pairs (paired_columns.h)
  int64_t step = 1;     // the distance from a column's chunk to its next one
  Tuning tuning;
  const ActivationChunk* chunks[kMaxColumns];  // for quantised weights
  const float* x[kMaxColumns];                 // for weights that are not quantised
  float* y[kMaxColumns];
};

// Returns whether the weights are put into tiles: as Tuning::way says, or for kUsual if there are
// `usual` columns or more. Returns false for a single column.
inline bool GoByTiles(const Columns& columns, int usual) {
  if (columns.count == 1) return false;
  const Way way = columns.tuning.way;
  return way == Way::kUsual ? columns.count >= usual : way == Way::kTiles;
}

// Sets y[c][r] = canon(dot(row r, column c)), or canon(canon(dot) + bias[r]), for r in `rows`.
void DotColumns(const WeightRows& weights, const Columns& columns, Range rows);

// Do what DotColumns does, for the types of one kind.
void DotQuantizedColumns(const WeightRows& weights, const Columns& columns, Range rows);
void DotPackedColumns(const WeightRows& weights, const Columns& columns, Range rows);
void DotFloatColumns(const WeightRows& weights, const Columns& columns, Range rows);

// The columns of a product that AMX (or its emulation) multiplies as records.
struct RecordColumns {
  int64_t count;                  // at least kInterleavedRows
  const ActivationChunk* chunks;  // memory that holds records (activation_records.h)
  std::byte* y;                   // the first column's results
  int64_t y_stride;               // bytes from column to column
};

// Does what DotColumns does, with AMX, for quantised weights and any number of columns from 16.
void MultiplyRecords(const WeightRows& weights, const RecordColumns& columns, Range rows,
                     const Caches& caches);

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
