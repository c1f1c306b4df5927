// Rows of any weight or cache type as f32.
//
// The arithmetic is defined, every step rounded to binary32:
//
//   weight = (d * float(scale)) * float(q) - dmin * float(min)
//
// with the factors a format lacks left out. f16 and bf16 are converted exactly, f32 is copied.
// Nothing is canon'd here: the operation that hands the values on does that.

#ifndef TRINE_KERNELS_QUANT_DEQUANTIZE_H_
#define TRINE_KERNELS_QUANT_DEQUANTIZE_H_

#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::quant {

// Values [32 * group, 32 * group + count) of a row. `count` is 32, or less at the end of a row of
// f32, f16 or bf16. Other types than weights and caches give zeros.
void DequantizeGroup(Type type, const void* row, int64_t group, int count, float* out);

// The first `values` values of a row.
void DequantizeRow(Type type, const void* row, int64_t values, float* out);

}  // namespace trine::quant

#endif  // TRINE_KERNELS_QUANT_DEQUANTIZE_H_
