// Every quantised format in one form: 32 consecutive weights as small integers and their scales.
//
//   weight[i] = d * scale[h] * q[i] - dmin * min[h],   h = i / 16
//
// Formats differ in how they pack these numbers, not in what they mean, so decoding and the dot
// product are each written once, over this form.

#ifndef TRINE_KERNELS_QUANT_GROUP_H_
#define TRINE_KERNELS_QUANT_GROUP_H_

#include <cstdint>

#include "kernels/quant/block_types.h"

namespace trine::quant {

struct Group {
  float d;
  float dmin;        // 0 for a format without minimums
  int32_t scale[2];  // 1 for a format without integer scales
  int32_t min[2];    // -1 for Q4_1 and Q5_1, which add their minimum
  int8_t q[kGroupValues];
};

// Reads weights [32 * index, 32 * index + 32) of a row. `type` is quantised.
void LoadGroup(Type type, const void* row, int64_t index, Group* group);

}  // namespace trine::quant

#endif  // TRINE_KERNELS_QUANT_GROUP_H_
