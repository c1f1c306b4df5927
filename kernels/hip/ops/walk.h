// Walks tensors together value by value: joins dimensions where it can, and lays a block and a grid
// over what is left. Every thread takes a unit of a row; the caller chooses the size of a unit.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/weights/tensor.h"

namespace trine::hip {

struct Walk {
  int64_t units = 0;  // in a row
  int64_t rows = 0;
  int64_t n1 = 1, n2 = 1;  // rows are counted over these and a third dimension
};

// `step`: the bytes from a value of the innermost dimension to the next.
struct WalkedTensor {
  Tensor* tensor;
  int64_t step;
};

// Joins two dimensions of `dims` if all tensors continue from one to the next without a gap.
// Changes the strides of the tensors to match; the strides of unused dimensions become 0. Does not
// read the tensors' own dims.
inline void Flatten(std::array<int64_t, 4>* dims, std::initializer_list<WalkedTensor> walked) {
  size_t last = 0;  // the last dimension that is kept
  for (size_t next = 1; next < 4; ++next) {
    const int64_t n = (*dims)[next];
    if (n == 1) continue;
    (*dims)[next] = 1;
    bool joins = true;
    for (const WalkedTensor& w : walked) {
      const int64_t step = last == 0 ? w.step : w.tensor->strides[last];
      joins &= w.tensor->strides[next] == step * (*dims)[last];
    }
    if (joins) {
      (*dims)[last] *= n;
      continue;
    }
    ++last;
    (*dims)[last] = n;
    for (const WalkedTensor& w : walked) w.tensor->strides[last] = w.tensor->strides[next];
  }
  for (size_t unused = last + 1; unused < 4; ++unused) {
    for (const WalkedTensor& w : walked) w.tensor->strides[unused] = 0;
  }
}

inline Walk WalkOf(const std::array<int64_t, 4>& dims, int64_t unit_values) {
  return {dims[0] / unit_values, dims[1] * dims[2] * dims[3], dims[1], dims[2]};
}

// Returns whether every row begins at a multiple of `bytes`, whichever dimensions are walked.
inline bool RowsAligned(const Tensor& t, int64_t bytes) {
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(t.data));
  return ((address | t.strides[1] | t.strides[2] | t.strides[3]) & (bytes - 1)) == 0;
}

// The grid and the block of a walk.
struct WalkShape {
  Dim grid, block;
};
// Divides the `threads` of a block into threads along a row and across rows, and returns the shape.
inline WalkShape ShapeOf(const Walk& walk, uint32_t threads) {
  uint32_t along = 1;
  while (along < threads && along < walk.units) along *= 2;
  const uint32_t across = threads / along;
  const auto blocks = [](int64_t work, int64_t of_a_block, int64_t most) {
    return static_cast<uint32_t>(std::min((work + of_a_block - 1) / of_a_block, most));
  };
  return {{blocks(walk.units, along, 0x7fffffff), blocks(walk.rows, across, kMaxGridYZ)},
          {along, across}};
}

}  // namespace trine::hip
