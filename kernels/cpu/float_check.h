// Compares a level's float operations with the scalar reference, bit for bit; see check.h.

#ifndef TRINE_KERNELS_CPU_FLOAT_CHECK_H_
#define TRINE_KERNELS_CPU_FLOAT_CHECK_H_

#include <cstdint>

#include "kernels/cpu/check.h"
#include "kernels/cpu/kernel_table.h"

namespace trine::cpu_kernels {

// Every operation but matrix products, expert routing and attention: odd shapes, paddings, split
// ranges, operations in place, adversarial values, denormals kept and flushed.
void CheckFloatOps(const KernelTable& table, CheckReport* report);

// The same for attention: `cases` random ones, and heads wider than any tile.
void CheckAttention(const KernelTable& table, int cases, CheckReport* report);

// The functions of vec_math.h over every `stride`-th bit pattern, and where they change course.
void CheckMath(const KernelTable& table, uint32_t stride, CheckReport* report);

// Whether the level's f16 conversions take denormal halves for zero while denormal floats are
// flushed. No processor's do, but those of qemu 7.2's F16C do; cases with f16 are then compared
// with denormals kept only.
bool F16HeedsFlushing(const KernelTable& table);

}  // namespace trine::cpu_kernels

#endif  // TRINE_KERNELS_CPU_FLOAT_CHECK_H_
