// Instantiates the kernels for packed rows.
#include "kernels/hip/gemm/gemm_tile.h"
#include "kernels/quant/packed_rows.h"

namespace trine::hip {

GemmKernel PackedGemm(quant::Type type, MatrixUnit unit, bool large) {
  return quant::PackedBlockTypes::Call(
      type, [&]<quant::Type kType>() { return GemmOf<WeightForm<kType, true>>(unit, large); });
}

}  // namespace trine::hip
