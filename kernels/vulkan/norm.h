// Runs of the norms: f32, a workgroup for each row. Operands: x, weight, (bias,) y, the optional
// ones keeping their numbers. `workgroup` is a multiple of 32.
#ifndef TRINE_KERNELS_VULKAN_NORM_H_
#define TRINE_KERNELS_VULKAN_NORM_H_

#include <cstdint>

#include "kernels/vulkan/dispatch.h"

namespace trine::vulkan {

// weight [n] or null.
KernelRun RmsNormRun(const TensorView& x, const TensorView* weight, float eps, const TensorView& y,
                     uint32_t workgroup);
// weight [n] or null, bias [n] or null.
KernelRun LayerNormRun(const TensorView& x, const TensorView* weight, const TensorView* bias,
                       float eps, const TensorView& y, uint32_t workgroup);

}  // namespace trine::vulkan

#endif  // TRINE_KERNELS_VULKAN_NORM_H_
