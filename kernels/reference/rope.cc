#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"

namespace trine::reference {

void Rope(const View& x, const View& table, RopeMode mode, const View& dst, Range rows) {
  const int64_t pairs = table.dims[0] / 2;
  const int64_t partner = mode == RopeMode::kHalves ? pairs : 1;
  const int64_t step = mode == RopeMode::kHalves ? 1 : 2;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* cosine = F32Row(table, IndexOfRow(x, r).i2);
    const float* sine = cosine + pairs;
    const float* from = F32Row(x, r);
    float* to = F32Row(dst, r);
    for (int64_t i = 0; i < pairs; ++i) {
      const float x0 = from[i * step];
      const float x1 = from[i * step + partner];
      to[i * step] = Canon(x0 * cosine[i] - x1 * sine[i]);
      to[i * step + partner] = Canon(x0 * sine[i] + x1 * cosine[i]);
    }
    for (int64_t i = 2 * pairs; i < x.dims[0]; ++i) to[i] = from[i];
  }
}

}  // namespace trine::reference
