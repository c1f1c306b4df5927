// Instantiates the kernels for packed rows.
#include "kernels/hip/gemm/gemm_tile.h"

namespace trine::hip {

GemmKernel PackedGemm(quant::Type type, MatrixUnit unit, bool large) {
  using quant::Type;
  switch (type) {
    case Type::kQ4_0:
      return GemmOf<WeightForm<Type::kQ4_0, true>>(unit, large);
    case Type::kQ8_0:
      return GemmOf<WeightForm<Type::kQ8_0, true>>(unit, large);
    case Type::kQ4_K:
      return GemmOf<WeightForm<Type::kQ4_K, true>>(unit, large);
    case Type::kQ5_K:
      return GemmOf<WeightForm<Type::kQ5_K, true>>(unit, large);
    case Type::kQ6_K:
      return GemmOf<WeightForm<Type::kQ6_K, true>>(unit, large);
    default:
      return nullptr;
  }
}

}  // namespace trine::hip
