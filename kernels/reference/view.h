// What an operation is given: strided views of memory it does not own, and a range of its work.

#ifndef TRINE_KERNELS_REFERENCE_VIEW_H_
#define TRINE_KERNELS_REFERENCE_VIEW_H_

#include <cstddef>
#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::reference {

// Up to four dimensions, innermost first; unused ones are 1. The innermost is contiguous.
// strides[0] is not read: of a quantised type it has no meaning. strides[1..3] are in bytes, may
// repeat a dimension (0) or be any multiple of the element's alignment.
struct View {
  std::byte* data = nullptr;
  int64_t dims[4] = {1, 1, 1, 1};
  int64_t strides[4] = {0, 0, 0, 0};
  quant::Type type = quant::Type::kF32;
  // The rows lie in groups, in an order of the CPU's kernels (kernels/cpu/packed.h), which alone
  // are given such views.
  bool packed = false;
};

// Rows [begin, end) of an operation's work. Splitting a range between calls, in any order or at the
// same time, changes no bit of the result.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

// The number of innermost rows.
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

// The same, as elements.
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

#endif  // TRINE_KERNELS_REFERENCE_VIEW_H_
