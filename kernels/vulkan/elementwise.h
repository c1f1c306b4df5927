// Runs of the ops that work value by value. All operands are f32 views of the same dims as y, but
// for the b of add and mul, where a dimension of 1 repeats. `workgroup` is free.
#ifndef TRINE_KERNELS_VULKAN_ELEMENTWISE_H_
#define TRINE_KERNELS_VULKAN_ELEMENTWISE_H_

#include <cstdint>

#include "kernels/reference/ops.h"
#include "kernels/vulkan/dispatch.h"

namespace trine::vulkan {

// Operands: a, b, y.
KernelRun AddRun(const TensorView& a, const TensorView& b, const TensorView& y, uint32_t workgroup);
KernelRun MulRun(const TensorView& a, const TensorView& b, const TensorView& y, uint32_t workgroup);
// Operands: gate, up, y.
KernelRun GluRun(const TensorView& gate, const TensorView& up, const reference::GluParams& params,
                 const TensorView& y, uint32_t workgroup);
// The same, with y as columns of quantised activations from `quantized` on in scratch, and where
// `writes_y` as it is too. Columns are [n, inner, outer], n a multiple of 32.
KernelRun GluQuantizeRun(const TensorView& gate, const TensorView& up,
                         const reference::GluParams& params, const TensorView& y, bool writes_y,
                         uint64_t quantized);

// Operands: x, y.
KernelRun ScaleRun(const TensorView& x, float scale, const TensorView& y, uint32_t workgroup);
KernelRun SoftcapRun(const TensorView& x, float cap, const TensorView& y, uint32_t workgroup);
KernelRun ActivationRun(const TensorView& x, reference::ActivationKind kind, const TensorView& y,
                        uint32_t workgroup);

}  // namespace trine::vulkan

#endif  // TRINE_KERNELS_VULKAN_ELEMENTWISE_H_
