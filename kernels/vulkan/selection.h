// Runs of top_k, moe_route and moe_combine. `workgroup` is a power of two, of at least 32.
#ifndef TRINE_KERNELS_VULKAN_SELECTION_H_
#define TRINE_KERNELS_VULKAN_SELECTION_H_

#include <cstdint>

#include "kernels/reference/ops.h"
#include "kernels/vulkan/dispatch.h"

namespace trine::vulkan {

// Operands: x [n, rows], ids i32 [k, rows], values [k, rows].
KernelRun TopKRun(const TensorView& x, const TensorView& ids, const TensorView& values,
                  uint32_t workgroup);

// Operands: logits [experts, tokens], bias [experts] or null, ids i32 [used, tokens], weights
// [used, tokens].
KernelRun MoeRouteRun(const TensorView& logits, const TensorView* bias,
                      const reference::MoeRouteParams& params, const TensorView& ids,
                      const TensorView& weights, uint32_t workgroup);

// Operands: x [n, used, tokens], weights [used, tokens], y [n, tokens].
KernelRun MoeCombineRun(const TensorView& x, const TensorView& weights, const TensorView& y,
                        uint32_t workgroup);

}  // namespace trine::vulkan

#endif  // TRINE_KERNELS_VULKAN_SELECTION_H_
