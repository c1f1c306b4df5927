// Prepares weights for the kernels: refuses rows with infinities or NaNs, and brings other rows
// into the range for which the kernels are defined.
#pragma once

#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::quant {

// Returns the index of the first value in the row that is, or whose scale is, an infinity or NaN,
// or -1 if there is none. In a quantised row it is the first value of the block. An i32 row has
// none. An MXFP4 scale of 255 is the format's NaN.
int64_t FirstNonFinite(Type type, const void* row, int64_t values);

inline bool RowIsFinite(Type type, const void* row, int64_t values) {
  return FirstNonFinite(type, row, values) < 0;
}

// Applies Canon to a row of f32 or bf16 in place. Rows of other types are in range already.
void CanonRow(Type type, void* row, int64_t values);

}  // namespace trine::quant
