// The end of a dot product: canon, and the bias with its own.

#ifndef TRINE_KERNELS_CPU_FINISH_H_
#define TRINE_KERNELS_CPU_FINISH_H_

#include <cstdint>

#include "kernels/cpu/int8_dot.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/vec.h"
#include "kernels/cpu/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

TRINE_INLINE float Finish(float dot, const float* bias, int64_t row) {
  return bias ? Canon(Canon(dot) + bias[row]) : Canon(dot);
}

// Those of N rows, the first of which is `first`, that are wanted.
template <int N>
TRINE_INLINE void FinishRows(F32<N> dots, const float* bias, int64_t first, Range wanted,
                             float* y) {
  if (first >= wanted.begin && first + N <= wanted.end) {
    dots = Canon(dots);
    if (bias) dots = Canon(dots + Load<N>(bias + first));
    return Store(dots, y + first);
  }
  float lanes[N];
  Store(dots, lanes);
  const int64_t begin = first > wanted.begin ? first : wanted.begin;
  const int64_t end = first + N < wanted.end ? first + N : wanted.end;
  for (int64_t row = begin; row < end; ++row) y[row] = Finish(lanes[row - first], bias, row);
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_FINISH_H_
