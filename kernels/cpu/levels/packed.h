// Packed weights: weights in the layout that a level's kernels read fastest. docs/cpu-kernels.md
// says why the layout is as it is.
//
// The rows of a matrix form groups; a group has the same number of rows as a tile of the level. A
// group holds chunks of 256 values, one after the other. A chunk holds first the scales of all rows
// of the group, then up to eight blocks of 32 values. In a block, a vector holds four values of
// every row, side by side: eight vectors if each value is a byte. Shorter values share bytes: the
// low four bits of two values lie in one byte, and the bits above them in further vectors. Values
// of six bits may lie otherwise (packed_format.h).
//
// A reference::View with `packed` set points to such a matrix. The view's strides[1] is the size of
// a group.

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::cpu_kernels {

// The size of the groups of a packed matrix.
struct PackedShape {
  int64_t group_rows = 0;   // 0: the level does not pack such rows
  int64_t group_bytes = 0;  // a multiple of kPackedAlignment
};

// The most values of a row that is packed. Matrices with longer rows stay plain.
inline constexpr int64_t kMaxPackedValues = 65536;

// The alignment of groups, in bytes.
inline constexpr int64_t kPackedAlignment = 64;

// Rows in the layout of the file, to be packed into one group.
struct PlainRows {
  quant::Type type;
  int64_t k;  // values of a row
  const std::byte* data;
  int64_t stride;  // bytes from row to row
  int64_t count;   // at most group_rows; the group's other rows become zeros
};

}  // namespace trine::cpu_kernels
