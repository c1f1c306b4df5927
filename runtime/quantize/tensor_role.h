// What part a tensor plays in a model, as far as it decides how many bits it should get.
#ifndef TRINE_RUNTIME_QUANTIZE_TENSOR_ROLE_H_
#define TRINE_RUNTIME_QUANTIZE_TENSOR_ROLE_H_

#include <cstdint>

#include "runtime/gguf/tensor_info.h"

namespace trine::quantize {

enum class Role {
  kKept,            // never quantised: norms, biases, routers, all that is small
  kOutput,          // makes the logits
  kTokenEmbedding,  // read row by row
  kAttentionQ,
  kAttentionK,
  kAttentionV,  // also where q, k and v are one tensor
  kAttentionOutput,
  kFeedForwardUp,  // gate too
  kFeedForwardDown,
  kOther,  // a matrix like any other
};

Role RoleOf(const gguf::TensorInfo& tensor);

// N of blk.N., -1 for a tensor outside of the layers.
int64_t LayerOf(const gguf::TensorInfo& tensor);

// Several matrices in one tensor: the experts of a mixture.
inline bool HasExperts(const gguf::TensorInfo& tensor) { return tensor.dims[2] > 1; }

}  // namespace trine::quantize

#endif  // TRINE_RUNTIME_QUANTIZE_TENSOR_ROLE_H_
