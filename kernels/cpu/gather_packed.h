// Single rows out of packed weights.

#ifndef TRINE_KERNELS_CPU_GATHER_PACKED_H_
#define TRINE_KERNELS_CPU_GATHER_PACKED_H_

#include <cstdint>

#include "kernels/cpu/kernel_table.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {

// Row `row` of a packed matrix, as GatherRows gives it.
void DecodePackedRow(const View& table, int64_t row, float* y);

}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_GATHER_PACKED_H_
