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

// Kernels of the CPU use these functions too. A file that is compiled for one instruction set must
// not emit a copy that the linker could lend to others, so the functions are static and inlined.
#define TRINE_OF_VIEW [[gnu::always_inline]] static inline

// Returns the number of innermost rows.
TRINE_OF_VIEW int64_t Rows(const View& view) { return view.dims[1] * view.dims[2] * view.dims[3]; }
TRINE_OF_VIEW Range AllRows(const View& view) { return {0, Rows(view)}; }

struct RowIndex {
  int64_t i1, i2, i3;
};

TRINE_OF_VIEW RowIndex IndexOfRow(const View& view, int64_t row) {
  return {row % view.dims[1], row / view.dims[1] % view.dims[2],
          row / (view.dims[1] * view.dims[2])};
}

TRINE_OF_VIEW std::byte* RowAt(const View& view, int64_t i1, int64_t i2, int64_t i3) {
  return view.data + i1 * view.strides[1] + i2 * view.strides[2] + i3 * view.strides[3];
}

TRINE_OF_VIEW std::byte* RowAt(const View& view, int64_t row) {
  const RowIndex index = IndexOfRow(view, row);
  return RowAt(view, index.i1, index.i2, index.i3);
}

// Return where a row begins, as a pointer to its elements.
TRINE_OF_VIEW float* F32Row(const View& view, int64_t row) {
  return reinterpret_cast<float*>(RowAt(view, row));
}
TRINE_OF_VIEW float* F32Row(const View& view, int64_t i1, int64_t i2, int64_t i3) {
  return reinterpret_cast<float*>(RowAt(view, i1, i2, i3));
}
TRINE_OF_VIEW int32_t* I32Row(const View& view, int64_t row) {
  return reinterpret_cast<int32_t*>(RowAt(view, row));
}

#undef TRINE_OF_VIEW

}  // namespace trine::reference
