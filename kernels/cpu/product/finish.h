// Finishes dot products: canon, then the bias and canon again.

#pragma once

#include <cstdint>

#include "kernels/cpu/levels/kernel_table.h"
#include "kernels/cpu/simd/int8_dot.h"
#include "kernels/cpu/simd/vec.h"
#include "kernels/cpu/simd/vec_math.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

TRINE_INLINE float Finish(float dot, const float* bias, int64_t row) {
  return bias ? Canon(Canon(dot) + bias[row]) : Canon(dot);
}

// Finishes the wanted ones of N rows, the first of which is `first`.
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
