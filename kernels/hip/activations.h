// Activations made ready for products of quantised weights, where what made them has not done it.
#ifndef TRINE_KERNELS_HIP_ACTIVATIONS_H_
#define TRINE_KERNELS_HIP_ACTIVATIONS_H_

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/quantized.h"
#include "kernels/hip/tensor.h"

namespace trine::hip {

// x is f32 [k, ..], k a multiple of 32: each of its rows becomes a column.
Launch QuantizeLaunch(const Tensor& x, const QuantizedColumns& to);

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_ACTIVATIONS_H_
