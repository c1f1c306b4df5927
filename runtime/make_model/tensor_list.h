// The tensors of a model: names, shapes and types as readers of GGUF files expect them, and how
// their values are spread.
#ifndef TRINE_RUNTIME_MAKE_MODEL_TENSOR_LIST_H_
#define TRINE_RUNTIME_MAKE_MODEL_TENSOR_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/quant/block_types.h"
#include "runtime/make_model/model_shape.h"

namespace trine {

struct TensorSpec {
  std::string name;
  std::vector<int64_t> dims;  // innermost first
  quant::Type type = quant::Type::kF32;
  float middle = 0;
  float spread = 0;           // the standard deviation
  std::vector<float> values;  // given instead of drawn; or empty

  int64_t rows() const;
};

// Matrices have the shape's types, whether or not their rows are whole blocks of it; norms, biases
// and routers are F32, as everywhere.
//
// Values are spread so that activations keep about unit size through any number of layers and
// logits differ by some units: weights of one over the root of a row's length, what is added to the
// residual less by the root of how often that happens.
std::vector<TensorSpec> ListTensors(const ModelShape& shape);

}  // namespace trine

#endif  // TRINE_RUNTIME_MAKE_MODEL_TENSOR_LIST_H_
