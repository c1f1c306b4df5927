#include <algorithm>

#include "kernels/quant/dequantize.h"
#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"

namespace trine::reference {

void GatherRows(const View& table, const View& ids, const View& dst, Range rows) {
  const int64_t k = table.dims[0];
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int32_t id = I32Row(ids, 0)[r];
    float* y = F32Row(dst, r);
    if (id < 0 || id >= table.dims[1]) {
      std::fill_n(y, k, 0.0f);
      continue;
    }
    quant::DequantizeRow(table.type, RowAt(table, id), k, y);
    for (int64_t i = 0; i < k; ++i) y[i] = Canon(y[i]);
  }
}

}  // namespace trine::reference
