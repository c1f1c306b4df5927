// Quantised weights by many columns, by AMX (or its emulation): both as records.

#ifndef TRINE_KERNELS_CPU_RECORD_PRODUCT_H_
#define TRINE_KERNELS_CPU_RECORD_PRODUCT_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/dot_columns.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {

struct RecordColumns {
  int64_t count;                  // at least kInterleavedRows
  const ActivationChunk* chunks;  // which hold records (activation_records.h)
  std::byte* y;                   // the first column's results
  int64_t y_stride;               // bytes from column to column
};

// As DotColumns, of 16 or more columns, without an upper bound.
void MultiplyRecords(const WeightRows& weights, const RecordColumns& columns, Range rows,
                     const Caches& caches);

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_RECORD_PRODUCT_H_
