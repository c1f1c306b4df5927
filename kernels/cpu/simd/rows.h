// Finds the rows of views, for kernels. The functions are those of kernels/reference/view.h, which
// have external linkage. A file that is compiled for one instruction set must not emit such copies.

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd/vec.h"
#include "kernels/reference/view.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

using reference::Range;
using reference::View;

struct RowPosition {
  int64_t i1, i2, i3;
};

TRINE_INLINE RowPosition PositionOfRow(const View& view, int64_t row) {
  return {row % view.dims[1], row / view.dims[1] % view.dims[2],
          row / (view.dims[1] * view.dims[2])};
}

TRINE_INLINE std::byte* BytesAt(const View& view, int64_t i1, int64_t i2, int64_t i3) {
  return view.data + i1 * view.strides[1] + i2 * view.strides[2] + i3 * view.strides[3];
}

TRINE_INLINE std::byte* BytesAt(const View& view, int64_t row) {
  const RowPosition at = PositionOfRow(view, row);
  return BytesAt(view, at.i1, at.i2, at.i3);
}

TRINE_INLINE float* FloatsAt(const View& view, int64_t row) {
  return reinterpret_cast<float*>(BytesAt(view, row));
}

TRINE_INLINE float* FloatsAt(const View& view, int64_t i1, int64_t i2, int64_t i3) {
  return reinterpret_cast<float*>(BytesAt(view, i1, i2, i3));
}

// Returns the first row of a view, as integers.
TRINE_INLINE const int32_t* Ints(const View& view) {
  return reinterpret_cast<const int32_t*>(view.data);
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
