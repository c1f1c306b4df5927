// Runs of the norms: f32, a workgroup for each row, and what goes along with a norm in the same
// run.
#ifndef TRINE_KERNELS_VULKAN_NORM_H_
#define TRINE_KERNELS_VULKAN_NORM_H_

#include <cstdint>
#include <optional>

#include "kernels/vulkan/dispatch.h"

namespace trine::vulkan {

struct Norm {
  bool centred = false;  // layer_norm, else rms_norm
  TensorView x;
  std::optional<TensorView> weight, bias;  // [n]
  float eps = 0;
  TensorView y;

  // x + addend, of the dims of x, is normed and written to sum as well. Both or none.
  std::optional<TensorView> addend, sum;
  // y as columns of quantised activations, a row each, from here on in scratch: n is a multiple of
  // 32, this one of 16.
  std::optional<uint64_t> quantized;
  bool writes_y = true;  // else it is quantised alone
};

// As NormRun counts them. y and sum may each be the view of x or addend, not of one another.
enum NormOperand : uint32_t { kNormX, kNormWeight, kNormBias, kNormAddend, kNormSum, kNormY };

// The workgroup that suits rows of n values, of at most `most` invocations.
uint32_t NormWorkgroup(int64_t n, uint32_t most);

// Values of a row, at most: they lie in registers. `most` as above.
int64_t MostNormValues(uint32_t most);

// `workgroup` is a power of two from 32 to 512.
KernelRun NormRun(const Norm& norm, uint32_t workgroup);

}  // namespace trine::vulkan

#endif  // TRINE_KERNELS_VULKAN_NORM_H_
