// Experts: which ones a token goes to and what becomes of their results; and the best of a row.
#ifndef TRINE_KERNELS_HIP_MOE_H_
#define TRINE_KERNELS_HIP_MOE_H_

#include "kernels/hip/gpu/launch.h"
#include "kernels/hip/tensor.h"
#include "kernels/reference/ops.h"

namespace trine::hip {

// logits [experts, tokens], selection_bias [experts] or absent -> ids i32 [used, tokens], weights
// [used, tokens].
Launch MoeRouteLaunch(const Tensor& logits, const Tensor& selection_bias,
                      const reference::MoeRouteParams& params, const Tensor& ids,
                      const Tensor& weights);

// x [n, used, tokens], weights [used, tokens] -> y [n, tokens].
Launch MoeCombineLaunch(const Tensor& x, const Tensor& weights, const Tensor& y);

// logits [n, rows] -> ids i32 [k, rows], values [k, rows]; k <= n.
Launch TopKLaunch(const Tensor& logits, const Tensor& ids, const Tensor& values);

}  // namespace trine::hip

#endif  // TRINE_KERNELS_HIP_MOE_H_
