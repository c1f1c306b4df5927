// rms_norm and layer_norm with what is next to them in most models, in one launch: the sum that is
// normed, and the quantisation of the result.
#ifndef TRINE_KERNELS_HIP_NORM_H_
#define TRINE_KERNELS_HIP_NORM_H_

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/quantized.h"
#include "kernels/hip/tensor.h"

namespace trine::hip {

// Tensors are f32. y and sum may be where x or the addend is, value for value.
struct Norm {
  Tensor x;
  Tensor addend;  // absent, or of x's shape: what is normed is x + addend
  Tensor sum;     // where that goes: present as the addend is
  Tensor weight;  // [n] or absent
  Tensor bias;    // [n] or absent
  float eps = 0.0f;
  bool centred = false;        // layer_norm
  Tensor y;                    // absent: not written
  QuantizedColumns quantized;  // absent: not quantised; else rows are whole blocks of 32
};

Launch NormLaunch(const Norm& norm);

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_NORM_H_
