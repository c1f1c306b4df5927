#include "kernels/reference/dot_rows.h"
#include "kernels/reference/ops.h"

namespace trine::reference {

void Matmul(const View& w, const View& x, const View* bias, const View& dst, Range features) {
  const WeightRows weight = {w.type, w.data, w.strides[1], w.dims[0]};
  const float* b = bias ? F32Row(*bias, 0) : nullptr;
  for (int64_t column = 0; column < Rows(x); ++column) {
    DotRows(weight, F32Row(x, column), b, F32Row(dst, column), features);
  }
}

}  // namespace trine::reference
