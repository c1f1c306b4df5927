// View: an operand of an operation, with strides, which does not own its memory. Range: a part of
// an operation's work.

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::reference {

// A tensor of up to four dimensions, innermost first; unused dimensions are 1. The innermost one is
// contiguous, so strides[0] is not read. strides[1..3] are in bytes: 0, which repeats a dimension,
// or any multiple of the element's alignment.
struct View {
  std::byte* data = nullptr;
  int64_t dims[4] = {1, 1, 1, 1};
  int64_t strides[4] = {0, 0, 0, 0};
  quant::Type type = quant::Type::kF32;
  // true: the rows lie in groups, in a layout of the CPU's kernels (kernels/cpu/levels/packed.h).
  // Only these kernels are given packed views.
  bool packed = false;
};

// Rows [begin, end) of an operation's work. Splitting a range between calls, in any order or at the
// same time, changes no bit of the result.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

// Returns the number of innermost rows.
inline int64_t Rows(const View& view) { return view.dims[1] * view.dims[2] * view.dims[3]; }
inline Range AllRows(const View& view) { return {0, Rows(view)}; }

struct RowIndex {
  int64_t i1, i2, i3;
};

inline RowIndex IndexOfRow(const View& view, int64_t row) {
  return {row % view.dims[1], row / view.dims[1] % view.dims[2],
          row / (view.dims[1] * view.dims[2])};
}

inline std::byte* RowAt(const View& view, int64_t i1, int64_t i2, int64_t i3) {
  return view.data + i1 * view.strides[1] + i2 * view.strides[2] + i3 * view.strides[3];
}

inline std::byte* RowAt(const View& view, int64_t row) {
  const RowIndex index = IndexOfRow(view, row);
  return RowAt(view, index.i1, index.i2, index.i3);
}

// Return where a row begins, as a pointer to its elements.
inline float* F32Row(const View& view, int64_t row) {
  return reinterpret_cast<float*>(RowAt(view, row));
}
inline float* F32Row(const View& view, int64_t i1, int64_t i2, int64_t i3) {
  return reinterpret_cast<float*>(RowAt(view, i1, i2, i3));
}
inline int32_t* I32Row(const View& view, int64_t row) {
  return reinterpret_cast<int32_t*>(RowAt(view, row));
}

}  // namespace trine::reference
