#include "backends/cpu/op_names.h"

#include <map>
#include <string>
#include <utility>

namespace trine::cpu {
namespace {

using Names = std::map<std::pair<uint32_t, uint32_t>, std::string>;  // by op and type

Names MakeNames() {
  Names names;
  for (uint32_t kind : {TRINE_OP_MATMUL, TRINE_OP_MOE_MATMUL}) {
    for (uint32_t dtype = TRINE_DTYPE_F32; dtype <= TRINE_DTYPE_MXFP4; ++dtype) {
      if (sdk::FindDtype(dtype) == nullptr) continue;
      names[{kind, dtype}] = std::string(sdk::OpName(kind)) + " " + sdk::DtypeName(dtype);
    }
  }
  return names;
}

}  // namespace

const char* TimedName(const sdk::Graph& graph, const sdk::Op& op) {
  static const Names names = MakeNames();
  if (op.in.empty() || !op.HasInput(0)) return sdk::OpName(op.kind);
  const auto found = names.find({op.kind, graph.tensors[op.in[0]].dtype});
  return found != names.end() ? found->second.c_str() : sdk::OpName(op.kind);
}

}  // namespace trine::cpu
