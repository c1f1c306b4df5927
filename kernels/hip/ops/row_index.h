// Finds the indices and the address of a tensor's row.
#pragma once

#include <cstdint>

#include "kernels/hip/gpu/device.h"
#include "kernels/hip/weights/tensor.h"

namespace trine::hip {

// The indices in the three outer dimensions.
struct RowIndex {
  int64_t i1, i2, i3;
};

// Returns a / b. Divides in 32 bits if it can: a division of 64 bits takes a hundred instructions.
TRINE_DEVICE int64_t Quotient(int64_t a, int64_t b) {
  if (((a | b) >> 32) != 0) return a / b;
  return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
}

// Returns the indices of row number `row`. Rows are counted over dimensions 1 to 3; n1 and n2 are
// the sizes of dimensions 1 and 2.
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
