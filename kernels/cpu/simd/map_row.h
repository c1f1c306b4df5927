// Loops over the elements of rows, a vector at a time. The row's tail is filled up with zeros; the
// function's results for these lanes are dropped.

#pragma once

#include <cstdint>

#include "kernels/cpu/simd/vec.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// The number of elements that a function is given at a time. A result takes long to compute, so
// several registers are computed together.
#if defined(__aarch64__)
constexpr int kRowLanes = 4 * kNativeLanes;
#else
constexpr int kRowLanes = kLanes;
#endif

// Sets to[i] = function(from[i]); `to` may be `from`.
template <typename Function>
TRINE_INLINE void MapRow(const float* from, float* to, int64_t n, Function function) {
  int64_t i = 0;
  for (; i + kRowLanes <= n; i += kRowLanes) Store(function(Load<kRowLanes>(from + i)), to + i);
  if (i < n) StorePartial(function(LoadPartial<kRowLanes>(from + i, n - i)), to + i, n - i);
}

// Sets to[i] = function(a[i], b[i]); any of the three may be the same row.
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
