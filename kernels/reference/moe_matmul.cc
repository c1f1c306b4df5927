#include <algorithm>

#include "kernels/reference/dot_rows.h"
#include "kernels/reference/ops.h"

namespace trine::reference {

void MoeMatmul(const View& w, const View& x, const View& ids, const View* bias, const View& dst,
               Range features) {
  for (int64_t row = 0; row < Rows(dst); ++row) {
    const int64_t slot = row % dst.dims[1];
    const int64_t token = row / dst.dims[1];
    const int32_t expert = I32Row(ids, token)[slot];
    float* y = F32Row(dst, row);
    if (expert < 0 || expert >= w.dims[2]) {
      std::fill(y + features.begin, y + features.end, 0.0f);
      continue;
    }
    const WeightRows weight = {w.type, RowAt(w, 0, expert, 0), w.strides[1], w.dims[0]};
    const float* from = F32Row(x, x.dims[1] == 1 ? 0 : slot, token, 0);
    DotRows(weight, from, bias ? F32Row(*bias, expert) : nullptr, y, features);
  }
}

}  // namespace trine::reference
