// Describes graphs in the kit's own form, which checks can change, and converts them to the ABI's
// form.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "trine/backend.h"

namespace trine::conformance {

using Bytes = std::vector<std::byte>;

// An op of a GraphSpec.
struct OpSpec {
  uint32_t kind = 0;
  std::vector<uint32_t> in;
  std::vector<uint32_t> out;
  Bytes attr;  // an attribute struct of the ABI; empty: NULL
};

// A value type: checks copy graphs and break one thing in the copy.
struct GraphSpec {
  uint32_t numerics = TRINE_NUMERICS_EXACT;
  std::vector<trine_slot> slots;
  std::vector<trine_tensor> tensors;
  std::vector<OpSpec> ops;
  std::vector<trine_param> params;

  // Adds a parameter. Returns the negative number that stands for it in trine_tensor::dims.
  int64_t AddParam(uint32_t kind, int64_t min, int64_t max);
  // Adds a tensor without gaps, in a new slot. Returns the tensor's index.
  uint32_t AddTensor(uint32_t role, uint32_t dtype, std::vector<int64_t> dims);
  // Adds a tensor with unused bytes before it, between its rows and after it, in a new slot.
  // Returns the tensor's index.
  uint32_t AddGappedTensor(uint32_t role, uint32_t dtype, std::vector<int64_t> dims);
  // Adds a second tensor over the same memory. Returns the new tensor's index.
  uint32_t AddAlias(uint32_t tensor) {
    tensors.push_back(tensors[tensor]);
    return static_cast<uint32_t>(tensors.size() - 1);
  }
  void AddOp(uint32_t kind, std::vector<uint32_t> in, std::vector<uint32_t> out);
  template <class Attr>
  void AddOp(uint32_t kind, std::vector<uint32_t> in, std::vector<uint32_t> out, Attr attr) {
    AddOp(kind, std::move(in), std::move(out));
    attr.struct_size = sizeof(attr);
    ops.back().attr.resize(sizeof(attr));
    std::memcpy(ops.back().attr.data(), &attr, sizeof(attr));
  }

  std::vector<int64_t> MaxParams() const;  // the parameters' maxima
  bool Writes(uint32_t slot) const;        // whether an op has an output in the slot
  std::string Describe() const;            // "matmul q4_0[96,17] f32[96,p0] -> f32[17,p0]"
};

// A GraphSpec in the ABI's form. Owns all it points to. `padding` bytes of garbage follow each
// element of each array, as if a newer host had longer structs.
class PackedGraph {
 public:
  explicit PackedGraph(const GraphSpec& spec, size_t padding = 0);
  PackedGraph(const PackedGraph&) = delete;
  PackedGraph& operator=(const PackedGraph&) = delete;

  const trine_graph* get() const { return reinterpret_cast<const trine_graph*>(graph_.data()); }
  // Overwrites the whole graph with garbage. Call it when a call of the plugin has returned: a
  // plugin must not read the graph later, and fails its check if it does.
  void Scribble();

 private:
  Bytes graph_;
  Bytes slots_, tensors_, ops_, params_;
  std::vector<std::vector<uint32_t>> operands_;
  std::vector<Bytes> attrs_;
};

inline constexpr std::byte kGarbage{0xA5};

// Returns `items` as bytes, with `padding` bytes of garbage after each item.
template <class T>
Bytes Spread(const std::vector<T>& items, size_t padding) {
  const size_t stride = sizeof(T) + padding;
  Bytes out(std::max<size_t>(items.size(), 1) * stride, kGarbage);
  for (size_t i = 0; i < items.size(); ++i) {
    std::memcpy(out.data() + i * stride, &items[i], sizeof(T));
  }
  return out;
}

}  // namespace trine::conformance
