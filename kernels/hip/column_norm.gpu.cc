#include "kernels/hip/column_norm.h"

namespace trine::hip {

bool IsColumnNorm(const Norm& norm) {
  const auto aligned = [](const Tensor& t) {
    return reinterpret_cast<uintptr_t>(t.data) % sizeof(Float4) == 0;
  };
  const int64_t n = norm.x.dims[0];
  return !norm.centred && n > 0 && n % 32 == 0 && n <= kMostNormed && norm.x.rows() == 1 &&
         norm.weight.present() && !norm.bias.present() && !norm.addend.present() &&
         !norm.y.present() && norm.quantized.present() && aligned(norm.x) && aligned(norm.weight);
}

ColumnNorm ColumnNormOf(const Norm& norm) {
  ColumnNorm of;
  of.x = reinterpret_cast<const float*>(norm.x.data);
  of.weight = reinterpret_cast<const float*>(norm.weight.data);
  of.inverse_n = quant::Recip(static_cast<float>(norm.x.dims[0]));
  of.eps = norm.eps;
  of.constant = norm.weight.constant;
  return of;
}

}  // namespace trine::hip
