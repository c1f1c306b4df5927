// Instantiates the kernels for types with blocks of 256 values, in the layout of files.
#include "kernels/hip/gemm/gemm_tile.h"

namespace trine::hip {

GemmKernel SuperBlockGemm(quant::Type type, MatrixUnit unit, bool large) {
  return quant::SuperBlockTypes::Call(
      type, [&]<quant::Type kType>() { return GemmOf<WeightForm<kType, false>>(unit, large); });
}

}  // namespace trine::hip
