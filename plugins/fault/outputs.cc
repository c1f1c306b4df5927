// Finds the outputs of a plan and overwrites them with garbage.
#include <algorithm>
#include <random>
#include <set>

#include "plugins/fault/faulty_handles.h"

namespace trine::fault {
namespace {

// Writes four bytes at a time, which hold a whole number of values of every output type.
class Filler {
 public:
  Filler(Junk junk, uint64_t seed) : junk_(junk), random_(seed) {}

  void Fill(std::vector<uint32_t>* words) {
    for (uint32_t& word : *words) word = Next();
  }

 private:
  uint32_t Next() {
    switch (junk_) {
      case Junk::kInf:
        return 0x7f800000u;
      case Junk::kHuge:
        return 0x7e967699u;  // 1e38: finite, and beyond 2^50
      case Junk::kTiny:
        return 0x00000001u;  // the smallest denormal, where 0 would be canonical
      case Junk::kBits:
        return static_cast<uint32_t>(random_());
      default:
        return 0x7fc00000u;
    }
  }
  const Junk junk_;
  std::mt19937_64 random_;
};

}  // namespace

PlanOutputs PlanOutputs::Of(const trine_plan_desc& desc) {
  PlanOutputs outputs;
  sdk::Graph graph;
  // If the plugin accepts a graph that the SDK refuses, its ops can't come from this host.
  if (sdk::CopyGraph(desc.graph, &graph, nullptr) != TRINE_OK) return outputs;
  std::set<uint32_t> tensors;
  for (const sdk::Op& op : graph.ops) {
    for (const uint32_t t : op.out) {
      if (graph.slots[graph.tensors[t].slot].role == TRINE_ROLE_IO) tensors.insert(t);
    }
  }
  for (uint32_t i = 0; i < desc.n_bindings; ++i) {
    const trine_binding binding = sdk::At(desc.bindings, desc.binding_stride, i);
    if (graph.slots[binding.slot].role == TRINE_ROLE_IO) outputs.bindings_.push_back(binding);
  }
  outputs.tensors_.assign(tensors.begin(), tensors.end());
  outputs.graph_ = std::move(graph);
  return outputs;
}

trine_status PlanOutputs::Spoil(const trine_plugin& table, const trine_run_args& args, Junk junk,
                                uint64_t seed, trine_error* err) const {
  Filler filler(junk, seed);
  for (const uint32_t t : tensors_) {
    const trine_tensor& tensor = graph_.tensors[t];
    const uint32_t alternate = args.n_alternates != 0 ? args.alternates[tensor.slot] : 0;
    const auto bound = std::find_if(
        bindings_.begin(), bindings_.end(),
        [&](const trine_binding& b) { return b.slot == tensor.slot && b.alternate == alternate; });
    if (bound == bindings_.end()) continue;
    const sdk::Dims dims = sdk::ResolveDims(tensor, args.params);
    const sdk::Dims strides = sdk::ResolveStrides(tensor, dims);
    const auto bytes = static_cast<uint64_t>(sdk::ValueBytes(tensor.dtype, dims[0]));
    std::vector<uint32_t> row((bytes + 3) / 4);
    const int64_t rows = bytes == 0 ? 0 : dims[1] * dims[2] * dims[3];
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = r % dims[1] * strides[1] + r / dims[1] % dims[2] * strides[2] +
                         r / dims[1] / dims[2] * strides[3];
      filler.Fill(&row);
      const trine_status status = table.buffer_write(
          bound->span.buffer, bound->span.offset + tensor.offset + static_cast<uint64_t>(at),
          row.data(), bytes, err);
      if (status != TRINE_OK) return status;
    }
  }
  return TRINE_OK;
}

}  // namespace trine::fault
