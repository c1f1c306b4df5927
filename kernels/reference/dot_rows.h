// Weight rows times one activation row: the core of Matmul and MoeMatmul.

#ifndef TRINE_KERNELS_REFERENCE_DOT_ROWS_H_
#define TRINE_KERNELS_REFERENCE_DOT_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/quant/block_types.h"
#include "kernels/reference/view.h"

namespace trine::reference {

struct WeightRows {
  quant::Type type;
  const std::byte* data;  // row 0
  int64_t stride;         // bytes from row to row
  int64_t k;              // values in a row
};

// y[r] = canon(dot(row r, x)), or canon(canon(dot) + bias[r]) with a bias, for r in `rows`.
void DotRows(const WeightRows& weight, const float* x, const float* bias, float* y, Range rows);

}  // namespace trine::reference

#endif  // TRINE_KERNELS_REFERENCE_DOT_ROWS_H_
