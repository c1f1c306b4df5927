// A tensor in a device's memory, as the host describes it for a launch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::hip {

// Dimensions are listed innermost first; unused dimensions are 1. The innermost one is contiguous,
// so strides[0] is not read. An absent optional operand has no data.
struct Tensor {
  std::byte* data = nullptr;
  quant::Type type = quant::Type::kF32;
  bool constant = false;  // no kernel writes it
  bool packed = false;    // in the layout of packed_rows.h: strides are those of packed rows
  std::array<int64_t, 4> dims = {1, 1, 1, 1};
  std::array<int64_t, 4> strides = {0, 0, 0, 0};  // in bytes; may be 0

  bool present() const { return data != nullptr; }
  int64_t rows() const { return dims[1] * dims[2] * dims[3]; }
  int64_t elements() const { return dims[0] * rows(); }
};

// The places of a tensor's rows, for kernels: by the three outer indices.
struct Rows {
  std::byte* data = nullptr;
  int64_t strides[3] = {0, 0, 0};  // of dimensions 1 to 3, in bytes
};

inline Rows RowsOf(const Tensor& t) { return {t.data, {t.strides[1], t.strides[2], t.strides[3]}}; }

}  // namespace trine::hip
