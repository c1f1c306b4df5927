// Loops over the elements of rows, a vector at a time. A function of vectors is also given the
// row's tail, filled up with zeros: what it makes of those lanes is dropped.

#ifndef TRINE_KERNELS_CPU_MAP_ROW_H_
#define TRINE_KERNELS_CPU_MAP_ROW_H_

#include <cstdint>

#include "kernels/cpu/vec.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Elements that a function is given at a time. The results of one are long in the making, so there
// are several registers of them under way.
#if defined(__aarch64__)
constexpr int kRowLanes = 4 * kNativeLanes;
#else
constexpr int kRowLanes = kLanes;
#endif

// to[i] = function(from[i]); the two may be the same row.
template <typename Function>
TRINE_INLINE void MapRow(const float* from, float* to, int64_t n, Function function) {
  int64_t i = 0;
  for (; i + kRowLanes <= n; i += kRowLanes) Store(function(Load<kRowLanes>(from + i)), to + i);
  if (i < n) StorePartial(function(LoadPartial<kRowLanes>(from + i, n - i)), to + i, n - i);
}

// to[i] = function(a[i], b[i]); any of the three may be the same row.
template <typename Function>
TRINE_INLINE void MapRows(const float* a, const float* b, float* to, int64_t n, Function function) {
  int64_t i = 0;
  for (; i + kRowLanes <= n; i += kRowLanes) {
    Store(function(Load<kRowLanes>(a + i), Load<kRowLanes>(b + i)), to + i);
  }
  if (i < n) {
    const int64_t rest = n - i;
    StorePartial(function(LoadPartial<kRowLanes>(a + i, rest), LoadPartial<kRowLanes>(b + i, rest)),
                 to + i, rest);
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_MAP_ROW_H_
