// Loops over the elements of rows, a vector at a time. A function of vectors is also given the
// row's tail, filled up with zeros: what it makes of those lanes is dropped.

#ifndef TRINE_KERNELS_CPU_MAP_ROW_H_
#define TRINE_KERNELS_CPU_MAP_ROW_H_

#include <cstdint>

#include "kernels/cpu/vec.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// to[i] = function(from[i]); the two may be the same row.
template <typename Function>
TRINE_INLINE void MapRow(const float* from, float* to, int64_t n, Function function) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(function(Load<kLanes>(from + i)), to + i);
  if (i < n) StorePartial(function(LoadPartial<kLanes>(from + i, n - i)), to + i, n - i);
}

// to[i] = function(a[i], b[i]); any of the three may be the same row.
template <typename Function>
TRINE_INLINE void MapRows(const float* a, const float* b, float* to, int64_t n, Function function) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Store(function(Load<kLanes>(a + i), Load<kLanes>(b + i)), to + i);
  }
  if (i < n) {
    const int64_t rest = n - i;
    StorePartial(function(LoadPartial<kLanes>(a + i, rest), LoadPartial<kLanes>(b + i, rest)),
                 to + i, rest);
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_MAP_ROW_H_
