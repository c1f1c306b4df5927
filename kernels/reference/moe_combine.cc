#include "kernels/reference/math.h"
#include "kernels/reference/ops.h"

namespace trine::reference {

void MoeCombine(const View& x, const View& weights, const View& dst, Range rows) {
  for (int64_t token = rows.begin; token < rows.end; ++token) {
    const float* weight = F32Row(weights, token);
    float* y = F32Row(dst, token);
    for (int64_t i = 0; i < dst.dims[0]; ++i) {
      float sum = Canon(F32Row(x, 0, token, 0)[i] * weight[0]);
      for (int64_t slot = 1; slot < x.dims[1]; ++slot) {
        sum = sum + Canon(F32Row(x, slot, token, 0)[i] * weight[slot]);
      }
      y[i] = Canon(sum);
    }
  }
}

}  // namespace trine::reference
