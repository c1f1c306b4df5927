#include "runtime/make_model/tensor_types.h"

#include <algorithm>

#include "runtime/gguf/format.h"
#include "runtime/gguf/tensor_info.h"

namespace trine {
namespace {

using quant::Type;

gguf::TensorInfo InfoOf(const TensorSpec& tensor) {
  gguf::TensorInfo info;
  info.name = tensor.name;
  info.rank = static_cast<uint32_t>(tensor.dims.size());
  std::copy(tensor.dims.begin(), tensor.dims.end(), info.dims);
  return info;
}

quantize::ModelFacts FactsOf(const ModelShape& shape) {
  return {.layers = shape.layers,
          .experts = std::max<int64_t>(shape.experts, 1),
          .shares_heads = shape.heads / shape.kv_heads >= 4,
          .tied_output = shape.tied};
}

// Files of one K type alone go by the name of its smallest mix.
std::string FileTypeOf(Type type) {
  const std::string name = gguf::TensorTypeName(type);
  const bool has_mixes = type == Type::kQ3_K || type == Type::kQ4_K || type == Type::kQ5_K;
  return has_mixes ? name + "_S" : name;
}

}  // namespace

std::string ChooseTypes(const ModelShape& shape, const quantize::Mix* mix, bool pure,
                        std::vector<TensorSpec>* tensors) {
  const quantize::ModelFacts facts = FactsOf(shape);
  for (TensorSpec& tensor : *tensors) {
    const gguf::TensorInfo info = InfoOf(tensor);
    if (quantize::RoleOf(info) == quantize::Role::kKept) continue;
    if (mix != nullptr) {
      tensor.type = pure ? mix->base : quantize::MixedType(*mix, info, facts);
    }
    tensor.type = quantize::FittingType(tensor.type, tensor.dims[0]);
  }
  if (mix != nullptr) return mix->name;
  return FileTypeOf(shape.experts > 0 ? shape.expert_type : shape.type);
}

}  // namespace trine
