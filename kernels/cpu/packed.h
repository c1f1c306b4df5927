// Weights in the order that a level's kernels like best: docs/cpu-kernels.md says why it is so.
//
// The rows of a matrix are taken in groups of as many as a vector has lanes. A group holds its
// chunks of 256 values one after the other: first the scales of all its rows, then the blocks of
// 32, each as eight vectors in which four values of every row lie side by side, four bits to a
// plane, and whatever bits are left in planes of their own (or, of six bits, in triples:
// packed_format.h). What a view with `packed` set points to
// is such a matrix: strides[1] is then the size of a group.

#ifndef TRINE_KERNELS_CPU_PACKED_H_
#define TRINE_KERNELS_CPU_PACKED_H_

#include <cstddef>
#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::cpu_kernels {

// The groups of a matrix whose rows have k values.
struct PackedShape {
  int64_t group_rows = 0;  // 0: the level takes this type as it is in files
  int64_t group_bytes = 0;
};

// Longer rows are not packed.
inline constexpr int64_t kMaxPackedValues = 65536;

// What groups are aligned to.
inline constexpr int64_t kPackedAlignment = 64;

// Rows of a file that become one group.
struct PlainRows {
  quant::Type type;
  int64_t k;
  const std::byte* data;
  int64_t stride;  // bytes from row to row
  int64_t count;   // at most group_rows; the group is filled up with zeros
};

}  // namespace trine::cpu_kernels

#endif  // TRINE_KERNELS_CPU_PACKED_H_
