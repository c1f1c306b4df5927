// Instantiates the kernels for types with blocks of 32 values, in the layout of files.
#include "kernels/hip/gemm/gemm_tile.h"

namespace trine::hip {

GemmKernel SmallBlockGemm(quant::Type type, MatrixUnit unit, bool large) {
  return quant::SmallBlockTypes::Call(
      type, [&]<quant::Type kType>() { return GemmOf<WeightForm<kType, false>>(unit, large); });
}

}  // namespace trine::hip
