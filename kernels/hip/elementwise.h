// The operations that work value by value, and copies.
//
// A destination may be where an operand of its shape is, value for value.
#ifndef TRINE_KERNELS_HIP_ELEMENTWISE_H_
#define TRINE_KERNELS_HIP_ELEMENTWISE_H_

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/quantized.h"
#include "kernels/hip/tensor.h"
#include "kernels/reference/ops.h"

namespace trine::hip {

// A dimension of 1 in b repeats.
Launch AddLaunch(const Tensor& a, const Tensor& b, const Tensor& y);
Launch MulLaunch(const Tensor& a, const Tensor& b, const Tensor& y);

Launch ScaleLaunch(const Tensor& x, float scale, const Tensor& y);
Launch SoftcapLaunch(const Tensor& x, float cap, const Tensor& y);
Launch ActivationLaunch(const Tensor& x, reference::ActivationKind kind, const Tensor& y);

// One of the two is absent, or neither: y, and the result as quantised activations, each row a
// column, which takes rows of whole blocks of 32.
Launch GluLaunch(const Tensor& gate, const Tensor& up, const reference::GluParams& params,
                 const Tensor& y, const QuantizedColumns& quantized);

// Of one type: bytes, whatever the type. Among f32, f16 and bf16: conversions. They do not overlap.
Launch CopyLaunch(const Tensor& src, const Tensor& dst);

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_ELEMENTWISE_H_
