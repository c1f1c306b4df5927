// Instantiates the kernels for types with blocks of 256 values, in the layout of files.
#include "kernels/hip/gemm/gemm_tile.h"

namespace trine::hip {

GemmKernel SuperBlockGemm(quant::Type type, MatrixUnit unit, bool large) {
  using quant::Type;
  switch (type) {
    case Type::kQ2_K:
      return GemmOf<WeightForm<Type::kQ2_K, false>>(unit, large);
    case Type::kQ3_K:
      return GemmOf<WeightForm<Type::kQ3_K, false>>(unit, large);
    case Type::kQ4_K:
      return GemmOf<WeightForm<Type::kQ4_K, false>>(unit, large);
    case Type::kQ5_K:
      return GemmOf<WeightForm<Type::kQ5_K, false>>(unit, large);
    case Type::kQ6_K:
      return GemmOf<WeightForm<Type::kQ6_K, false>>(unit, large);
    case Type::kIQ4_XS:
      return GemmOf<WeightForm<Type::kIQ4_XS, false>>(unit, large);
    case Type::kTQ1_0:
      return GemmOf<WeightForm<Type::kTQ1_0, false>>(unit, large);
    case Type::kTQ2_0:
      return GemmOf<WeightForm<Type::kTQ2_0, false>>(unit, large);
    default:
      return nullptr;
  }
}

}  // namespace trine::hip
