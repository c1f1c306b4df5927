// Runs of copy and gather_rows. `workgroup` is free.
#ifndef TRINE_KERNELS_VULKAN_DATA_MOVEMENT_H_
#define TRINE_KERNELS_VULKAN_DATA_MOVEMENT_H_

#include <cstdint>

#include "kernels/vulkan/dispatch.h"

namespace trine::vulkan {

// Operands: x, y, of the same dims. The same type, whichever, is moved; f32, f16 and bf16 are
// converted among each other.
KernelRun CopyRun(const TensorView& x, const TensorView& y, uint32_t workgroup);

// The rows of a table that are bound, where it is larger than a binding may be. The view of such a
// table has the dims of the whole and the offset of the window's first row.
struct TableWindow {
  int64_t first_row = 0;
  int64_t rows = 0;
};

// Operands: table [k, rows] of any weight type, ids [n], y [k, n]. One run for each window of the
// table, in any order.
KernelRun GatherRowsRun(const TensorView& table, const TableWindow& window, const TensorView& ids,
                        const TensorView& y, uint32_t workgroup);
inline KernelRun GatherRowsRun(const TensorView& table, const TensorView& ids, const TensorView& y,
                               uint32_t workgroup) {
  return GatherRowsRun(table, {0, table.dims[1]}, ids, y, workgroup);
}

}  // namespace trine::vulkan

#endif  // TRINE_KERNELS_VULKAN_DATA_MOVEMENT_H_
