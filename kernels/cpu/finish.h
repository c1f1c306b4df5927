// The end of a dot product: canon, and the bias with its own.

#ifndef TRINE_KERNELS_CPU_FINISH_H_
#define TRINE_KERNELS_CPU_FINISH_H_

#include <cstdint>

#include "kernels/cpu/int8_dot.h"
#include "kernels/cpu/vec.h"
#include "kernels/cpu/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

TRINE_INLINE float Finish(float dot, const float* bias, int64_t row) {
  return bias ? Canon(Canon(dot) + bias[row]) : Canon(dot);
}

// Rows [first, first + count) of a tile, count <= kTileRows.
TRINE_INLINE void FinishRows(TileFloats dots, const float* bias, int64_t first, int count,
                             float* y) {
  dots = Canon(dots);
  if (count == kTileRows) {
    if (bias) dots = Canon(dots + Load<kTileRows>(bias + first));
    Store(dots, y + first);
  } else {
    if (bias) dots = Canon(dots + LoadPartial<kTileRows>(bias + first, count));
    StorePartial(dots, y + first, count);
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_FINISH_H_
