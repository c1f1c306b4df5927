// Reads rows of any weight or cache type, and converts them to f32.
//
// The arithmetic is defined, every step rounded to binary32:
//
//   weight = (d * float(scale)) * float(q) - dmin * float(min)
//
// without the factors that a format lacks. f16 and bf16 are converted exactly, f32 is copied. The
// results are not canonical: the operation that outputs them applies Canon.
#pragma once

#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::quant {

// Every quantised format in one form: 32 consecutive weights as small integers and their scales.
//
//   weight[i] = d * scale[h] * q[i] - dmin * min[h],   h = i / 16
//
// Formats differ in how they pack these numbers, not in their meaning, so decoding and the dot
// product are written once, for this form.
struct Group {
  float d;
  float dmin;        // 0 for a format without minimums
  int32_t scale[2];  // 1 for a format without integer scales
  int32_t min[2];    // -1 for Q4_1 and Q5_1, which add their minimum
  int8_t q[kGroupValues];
};

// Reads weights [32 * index, 32 * index + 32) of a row. REQUIRES: `type` is quantised.
void LoadGroup(Type type, const void* row, int64_t index, Group* group);

// Converts values [32 * group, 32 * group + count) of a row. `count` is 32, or less at the end of a
// row of f32, f16 or bf16. Writes zeros for a type that neither weights nor caches have.
void DequantizeGroup(Type type, const void* row, int64_t group, int count, float* out);

// Converts the first `values` values of a row.
void DequantizeRow(Type type, const void* row, int64_t values, float* out);

}  // namespace trine::quant
