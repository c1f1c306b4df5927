// Adds up the weighted values of four queries over a tile, instruction by instruction. This is the
// inner loop of attention_values.h if there are many queries.
//
// A Neoverse N1 multiplies or adds two vectors per cycle if the next instructions are ready: its
// queues are too short to look far ahead. Compilers put loads at the head of a loop, and additions
// right after their products, and reach four fifths of that. Here a product is added four products
// later, and the operands of a position are loaded while the position before is computed.

#pragma once

#if defined(__aarch64__)

#include <cstdint>

#include "kernels/cpu/simd/vec.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Sets sums[i][j], for query i < 4 and value j < 16, to the sum of values[t][j] * weights[t][i]
// over t = 0, 4, 8 .. below `positions`, by increasing t. Also reads up to four positions after the
// last, and does not use them.
TRINE_INLINE void SumClassOfFour(const float* values, const float* weights, int64_t positions,
                                 float* sums) {
#define MUL(product, value, lane) "fmul v" #product ".4s, v" #value ".4s, v4.s[" #lane "]\n\t"
#define ADD(sum, product) "fadd v" #sum ".4s, v" #sum ".4s, v" #product ".4s\n\t"
  asm volatile(
      "movi v16.4s, #0\n\tmovi v17.4s, #0\n\tmovi v18.4s, #0\n\tmovi v19.4s, #0\n\t"
      "movi v20.4s, #0\n\tmovi v21.4s, #0\n\tmovi v22.4s, #0\n\tmovi v23.4s, #0\n\t"
      "movi v24.4s, #0\n\tmovi v25.4s, #0\n\tmovi v26.4s, #0\n\tmovi v27.4s, #0\n\t"
      "movi v28.4s, #0\n\tmovi v29.4s, #0\n\tmovi v30.4s, #0\n\tmovi v31.4s, #0\n\t"
      "ldr q4, [%[weights]]\n\t"
      "ldp q0, q1, [%[values]]\n\t"
      "ldp q2, q3, [%[values], #32]\n\t"
      "1:\n\t"
      MUL(8, 0, 0) MUL(9, 1, 0) MUL(10, 2, 0) MUL(11, 3, 0)
      "add %[weights], %[weights], #64\n\t"
      ADD(16, 8) MUL(8, 0, 1) ADD(17, 9) MUL(9, 1, 1)
      ADD(18, 10) MUL(10, 2, 1) ADD(19, 11) MUL(11, 3, 1)
      "add %[values], %[values], #256\n\t"
      ADD(20, 8) MUL(8, 0, 2) ADD(21, 9) MUL(9, 1, 2)
      ADD(22, 10) MUL(10, 2, 2) ADD(23, 11) MUL(11, 3, 2)
      "subs %[positions], %[positions], #4\n\t"
      ADD(24, 8) MUL(8, 0, 3) ADD(25, 9) MUL(9, 1, 3)
      "ldp q0, q1, [%[values]]\n\t"
      ADD(26, 10) MUL(10, 2, 3) ADD(27, 11) MUL(11, 3, 3)
      "ldp q2, q3, [%[values], #32]\n\t"
      "ldr q4, [%[weights]]\n\t"
      ADD(28, 8) ADD(29, 9) ADD(30, 10) ADD(31, 11)
      "b.gt 1b\n\t"
      "stp q16, q17, [%[sums]]\n\t"
      "stp q18, q19, [%[sums], #32]\n\t"
      "stp q20, q21, [%[sums], #64]\n\t"
      "stp q22, q23, [%[sums], #96]\n\t"
      "stp q24, q25, [%[sums], #128]\n\t"
      "stp q26, q27, [%[sums], #160]\n\t"
      "stp q28, q29, [%[sums], #192]\n\t"
      "stp q30, q31, [%[sums], #224]"
      : [values] "+r"(values), [weights] "+r"(weights), [positions] "+r"(positions)
      : [sums] "r"(sums)
      : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v8", "v9", "v10", "v11", "v16", "v17",
        "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30",
        "v31");
#undef MUL
#undef ADD
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif
