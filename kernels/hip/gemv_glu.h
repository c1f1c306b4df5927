// Two products of one x and the glu of both, quantised, in one launch: what the products would
// write is written nowhere.
#ifndef TRINE_KERNELS_HIP_GEMV_GLU_H_
#define TRINE_KERNELS_HIP_GEMV_GLU_H_

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/norm.h"
#include "kernels/hip/product.h"
#include "kernels/reference/ops.h"

namespace trine::hip {

// Whether there is a kernel for weights of this type.
bool HasGluGemv(quant::Type type, bool packed);

// One that GemvLaunch can do with both, of up to 8 columns and a multiple of 32 rows; their y has
// no data. `to` is not where q is: blocks still read that when others have written. `norm`: null,
// or the norm that makes q of one column, for which IsColumnNorm holds (column_norm.h): each block
// makes it for itself, and nobody else has it.
Launch GluGemvLaunch(const Norm* norm, const Product& gate, const Product& up,
                     const reference::GluParams& params, const QuantizedColumns& to,
                     const DeviceShape& shape);

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_GEMV_GLU_H_
