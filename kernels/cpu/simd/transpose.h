// Transposes vectors of 32-bit lanes: four of four, or eight of eight.

#pragma once

#include "kernels/cpu/simd/vec.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

template <typename T>
struct Square4 {
  Vec<T, 4> row[4];
};

template <typename T>
TRINE_INLINE Square4<T> Transposed(Vec<T, 4> a, Vec<T, 4> b, Vec<T, 4> c, Vec<T, 4> d) {
  const auto ab01 = __builtin_shufflevector(a.v, b.v, 0, 4, 1, 5);
  const auto ab23 = __builtin_shufflevector(a.v, b.v, 2, 6, 3, 7);
  const auto cd01 = __builtin_shufflevector(c.v, d.v, 0, 4, 1, 5);
  const auto cd23 = __builtin_shufflevector(c.v, d.v, 2, 6, 3, 7);
  return {{{__builtin_shufflevector(ab01, cd01, 0, 1, 4, 5)},
           {__builtin_shufflevector(ab01, cd01, 2, 3, 6, 7)},
           {__builtin_shufflevector(ab23, cd23, 0, 1, 4, 5)},
           {__builtin_shufflevector(ab23, cd23, 2, 3, 6, 7)}}};
}

template <typename T>
TRINE_INLINE void Transpose(Vec<T, 8> (&x)[8]) {
  const Square4<T> a = Transposed(Low(x[0]), Low(x[1]), Low(x[2]), Low(x[3]));
  const Square4<T> b = Transposed(High(x[0]), High(x[1]), High(x[2]), High(x[3]));
  const Square4<T> c = Transposed(Low(x[4]), Low(x[5]), Low(x[6]), Low(x[7]));
  const Square4<T> d = Transposed(High(x[4]), High(x[5]), High(x[6]), High(x[7]));
  for (int i = 0; i < 4; ++i) {
    x[i] = Join(a.row[i], c.row[i]);
    x[4 + i] = Join(b.row[i], d.row[i]);
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
