// Names ops for op_done. The names live as long as the plugin and are the same in all backends, so
// that a host can compare their times. Fused ops join their names with '+':
// "add+rms_norm+quantize".
#ifndef TRINE_SDK_OP_NAMES_H_
#define TRINE_SDK_OP_NAMES_H_

#include <map>
#include <string>
#include <utility>

#include "trine/sdk/graph.h"
#include "trine/sdk/op_rules.h"

namespace trine::sdk {

// The quantisation of activations for products with quantised weights.
inline constexpr const char* kQuantizeName = "quantize";

namespace internal {

using ProductNames = std::map<std::pair<uint32_t, uint32_t>, std::string>;  // by op and type

inline ProductNames MakeProductNames() {
  ProductNames names;
  for (uint32_t kind : {TRINE_OP_MATMUL, TRINE_OP_MOE_MATMUL}) {
    for (uint32_t dtype = TRINE_DTYPE_F32; dtype <= TRINE_DTYPE_MXFP4; ++dtype) {
      if (FindDtype(dtype) == nullptr) continue;
      names[{kind, dtype}] = std::string(OpName(kind)) + " " + DtypeName(dtype);
    }
  }
  return names;
}

}  // namespace internal

// Returns the op's name. The name of a matrix product has the type of its weights: "matmul q4_0".
inline const char* TimedName(const Graph& graph, const Op& op) {
  static const internal::ProductNames names = internal::MakeProductNames();
  if (op.in.empty() || !op.HasInput(0)) return OpName(op.kind);
  const auto found = names.find({op.kind, graph.tensors[op.in[0]].dtype});
  return found != names.end() ? found->second.c_str() : OpName(op.kind);
}

}  // namespace trine::sdk

#endif  // TRINE_SDK_OP_NAMES_H_
