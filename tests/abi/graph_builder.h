// Builds graphs for tests of the SDK, with vectors that own what a trine_graph points to.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "trine/backend_sdk.h"

namespace trine::sdk {

class GraphBuilder {
 public:
  std::vector<trine_slot> slots;
  std::vector<trine_tensor> tensors;
  std::vector<trine_op> ops;
  std::vector<trine_param> params;

  // Adds a parameter and returns the dimension that stands for it.
  int64_t Param(int64_t min, int64_t max) {
    params.push_back({TRINE_PARAM_TOKENS, 0, min, max});
    return -static_cast<int64_t>(params.size());
  }

  uint32_t Slot(uint32_t role, uint64_t bytes, uint32_t alternates = 1) {
    slots.push_back({role, alternates, bytes});
    return static_cast<uint32_t>(slots.size() - 1);
  }

  // Adds a packed tensor in a slot of its own that is large enough for most tests.
  uint32_t Tensor(uint32_t dtype, std::vector<int64_t> dims, uint32_t role = TRINE_ROLE_IO,
                  uint64_t slot_bytes = 1 << 20) {
    trine_tensor t{};
    t.dtype = dtype;
    t.rank = static_cast<uint32_t>(dims.size());
    t.slot = Slot(role, slot_bytes);
    for (size_t i = 0; i < dims.size() && i < TRINE_MAX_RANK; ++i) t.dims[i] = dims[i];
    tensors.push_back(t);
    return static_cast<uint32_t>(tensors.size() - 1);
  }
  uint32_t F32(std::vector<int64_t> dims) { return Tensor(TRINE_DTYPE_F32, std::move(dims)); }
  uint32_t I32(std::vector<int64_t> dims) { return Tensor(TRINE_DTYPE_I32, std::move(dims)); }

  trine_op& Op(uint32_t kind, std::vector<uint32_t> in, std::vector<uint32_t> out) {
    lists_.push_back(std::move(in));
    const std::vector<uint32_t>& ins = lists_.back();
    lists_.push_back(std::move(out));
    const std::vector<uint32_t>& outs = lists_.back();
    trine_op op{};
    op.kind = kind;
    op.n_in = static_cast<uint32_t>(ins.size());
    op.n_out = static_cast<uint32_t>(outs.size());
    op.in = ins.data();
    op.out = outs.data();
    ops.push_back(op);
    return ops.back();
  }
  template <class Attr>
  trine_op& Op(uint32_t kind, std::vector<uint32_t> in, std::vector<uint32_t> out, Attr attr) {
    attr.struct_size = sizeof(attr);
    const auto* bytes = reinterpret_cast<const std::byte*>(&attr);
    attrs_.emplace_back(bytes, bytes + sizeof(attr));
    trine_op& op = Op(kind, std::move(in), std::move(out));
    op.attr = attrs_.back().data();
    return op;
  }

  trine_graph Abi() const {
    trine_graph g{};
    g.struct_size = sizeof(g);
    g.numerics = TRINE_NUMERICS_EXACT;
    g.n_slots = static_cast<uint32_t>(slots.size());
    g.slot_stride = sizeof(trine_slot);
    g.n_tensors = static_cast<uint32_t>(tensors.size());
    g.tensor_stride = sizeof(trine_tensor);
    g.n_ops = static_cast<uint32_t>(ops.size());
    g.op_stride = sizeof(trine_op);
    g.n_params = static_cast<uint32_t>(params.size());
    g.param_stride = sizeof(trine_param);
    g.slots = slots.data();
    g.tensors = tensors.data();
    g.ops = ops.data();
    g.params = params.data();
    return g;
  }

  // Returns "" when the SDK accepts the graph, else its message.
  std::string Refusal(Graph* out) const {
    const trine_graph abi = Abi();
    trine_error err{};
    const trine_status status = CopyGraph(&abi, out, &err);
    if (status == TRINE_OK) return "";
    return status == TRINE_INVALID_ARGUMENT ? err.message : "another status than INVALID_ARGUMENT";
  }
  std::string Refusal() const {
    Graph graph;
    return Refusal(&graph);
  }

 private:
  std::deque<std::vector<uint32_t>> lists_;
  std::deque<std::vector<std::byte>> attrs_;
};

}  // namespace trine::sdk
