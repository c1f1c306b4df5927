// Instantiates the kernels for types with blocks of 32 values, in the layout of files.
#include "kernels/hip/gemm/gemm_tile.h"

namespace trine::hip {

GemmKernel SmallBlockGemm(quant::Type type, MatrixUnit unit, bool large) {
  using quant::Type;
  switch (type) {
    case Type::kQ4_0:
      return GemmOf<WeightForm<Type::kQ4_0, false>>(unit, large);
    case Type::kQ4_1:
      return GemmOf<WeightForm<Type::kQ4_1, false>>(unit, large);
    case Type::kQ5_0:
      return GemmOf<WeightForm<Type::kQ5_0, false>>(unit, large);
    case Type::kQ5_1:
      return GemmOf<WeightForm<Type::kQ5_1, false>>(unit, large);
    case Type::kQ8_0:
      return GemmOf<WeightForm<Type::kQ8_0, false>>(unit, large);
    case Type::kQ8_KV:
      return GemmOf<WeightForm<Type::kQ8_KV, false>>(unit, large);
    case Type::kIQ4_NL:
      return GemmOf<WeightForm<Type::kIQ4_NL, false>>(unit, large);
    case Type::kMXFP4:
      return GemmOf<WeightForm<Type::kMXFP4, false>>(unit, large);
    default:
      return nullptr;
  }
}

}  // namespace trine::hip
