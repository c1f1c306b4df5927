// Lists the tensors of a model: with the names, shapes and types that readers of GGUF files expect,
// and with the distribution of their values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/quant/block_types.h"
#include "runtime/make_model/model_shape.h"

namespace trine {

// The factors by which long-context models stretch the waves of their rotary embeddings.
struct RopeFactors {
  std::string name;  // the name of the tensor that has the factors
  std::vector<float> values;
};

// Returns the tensors of factors that the shape needs: none for most kinds of scaling. Computes
// Llama 3's factors as its authors published them. LongRoPE's authors found factors for each model
// by search; returns ramps that look like them.
std::vector<RopeFactors> MakeRopeFactors(const ModelShape& shape);

struct TensorSpec {
  std::string name;
  std::vector<int64_t> dims;  // innermost first
  quant::Type type = quant::Type::kF32;
  float middle = 0;
  float spread = 0;           // the standard deviation
  std::vector<float> values;  // the values; empty: random values
  // [row]: what its random values are multiplied by; empty: by 1
  std::vector<float> row_factors;

  int64_t rows() const;
};

// Returns the tensors of a model. Matrices have the shape's types, even if their rows are not whole
// blocks of these types. Norms, biases and routers are F32, as in every model file.
//
// Chooses spreads such that activations keep a size of about 1 through any number of layers, and
// logits differ by a few units. The spread of a matrix is 1 / sqrt(length of a row). If its result
// is added to the residual, the spread is also divided by the square root of the number of these
// additions.
std::vector<TensorSpec> ListTensors(const ModelShape& shape);

}  // namespace trine
