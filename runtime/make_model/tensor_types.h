// Which types the tensors of a model are stored in.
#ifndef TRINE_RUNTIME_MAKE_MODEL_TENSOR_TYPES_H_
#define TRINE_RUNTIME_MAKE_MODEL_TENSOR_TYPES_H_

#include <string>
#include <vector>

#include "runtime/make_model/model_shape.h"
#include "runtime/make_model/tensor_list.h"
#include "runtime/quantize/mix.h"

namespace trine {

// The types that quantising the model would give: those of `mix`, or its base type for all matrices
// where `pure`. Null leaves the shape's own. Where rows are no whole blocks of a type the next one
// that fits takes its place. Returns the name of the file's type.
std::string ChooseTypes(const ModelShape& shape, const quantize::Mix* mix, bool pure,
                        std::vector<TensorSpec>* tensors);

}  // namespace trine

#endif  // TRINE_RUNTIME_MAKE_MODEL_TENSOR_TYPES_H_
