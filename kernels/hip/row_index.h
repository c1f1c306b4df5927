// Which row of a tensor a kernel is at, and where that row is.
#ifndef TRINE_KERNELS_HIP_ROW_INDEX_H_
#define TRINE_KERNELS_HIP_ROW_INDEX_H_

#include <cstdint>

#include "kernels/hip/gpu/device.h"
#include "kernels/hip/tensor.h"

namespace trine::hip {

// By the three outer dimensions.
struct RowIndex {
  int64_t i1, i2, i3;
};

// A division of 64 bits is a call of a hundred instructions: what fits 32 is spared it.
TRINE_DEVICE int64_t Quotient(int64_t a, int64_t b) {
  if (((a | b) >> 32) != 0) return a / b;
  return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
}

// Rows are counted over dimensions 1 to 3, of which n1 and n2 are the first two.
TRINE_DEVICE RowIndex IndexOfRow(int64_t row, int64_t n1, int64_t n2) {
  const int64_t outer = Quotient(row, n1), i3 = Quotient(outer, n2);
  return {row - outer * n1, outer - i3 * n2, i3};
}

template <class T>
TRINE_DEVICE T* RowAt(const Rows& rows, const RowIndex& index) {
  return reinterpret_cast<T*>(rows.data + index.i1 * rows.strides[0] + index.i2 * rows.strides[1] +
                              index.i3 * rows.strides[2]);
}

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_ROW_INDEX_H_
