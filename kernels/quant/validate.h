// What a loader does to weights before any kernel sees them: refuse the ones that hold no number,
// bring the others into the range the kernels are defined on.

#ifndef TRINE_KERNELS_QUANT_VALIDATE_H_
#define TRINE_KERNELS_QUANT_VALIDATE_H_

#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::quant {

// The index of the first value (of a quantised row: the first value of the block) whose float or
// scale is an infinity or NaN; -1 when the row is good. An i32 row is always good. An MXFP4 scale
// of 255, the format's NaN, is bad.
int64_t FirstNonFinite(Type type, const void* row, int64_t values);

inline bool RowIsFinite(Type type, const void* row, int64_t values) {
  return FirstNonFinite(type, row, values) < 0;
}

// Canons a row of f32 or bf16 in place; rows of other types are in range as they are.
void CanonRow(Type type, void* row, int64_t values);

}  // namespace trine::quant

#endif  // TRINE_KERNELS_QUANT_VALIDATE_H_
