// A graph of ops as a host builds it. Owns everything that the ABI's trine_graph points to. Not
// thread-safe.
//
// Each temporary tensor is added with its own slot, a piece of memory. Finish() then gives one slot
// to tensors whose lives do not overlap. So a segment of any depth needs the scratch of one layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "trine/backend.h"

namespace trine {

using TensorId = uint32_t;
using SlotId = uint32_t;
using Shape = std::vector<int64_t>;  // innermost first; a negative dimension is a parameter

class OpGraph {
 public:
  // `numerics`: how exactly a device has to compute the graph, TRINE_NUMERICS_EXACT or _FAST.
  explicit OpGraph(uint32_t numerics = TRINE_NUMERICS_EXACT) : numerics_(numerics) {}
  OpGraph(OpGraph&&) = default;
  OpGraph& operator=(OpGraph&&) = default;

  uint32_t numerics() const { return numerics_; }

  // Adds a parameter, whose value each run sets. Returns the dimension that stands for it.
  int64_t AddParam(uint32_t kind, int64_t min, int64_t max);
  uint32_t n_params() const { return static_cast<uint32_t>(params_.size()); }
  const std::vector<trine_param>& params() const { return params_; }

  // Adds a tensor without gaps, at `offset` bytes into its own new slot, which has this role.
  TensorId AddTensor(uint32_t role, uint32_t dtype, const Shape& shape, uint64_t offset = 0,
                     uint32_t alternates = 1);
  TensorId AddTemp(const Shape& shape) {
    return AddTensor(TRINE_ROLE_TEMP, TRINE_DTYPE_F32, shape);
  }
  // Moves the only tensor of a slot: the offset of a weight is known only when it has been placed.
  void SetOffset(TensorId id, uint64_t offset);
  // Gives the only tensor of a slot one of the device's layouts, or PLAIN again. In that layout the
  // tensor takes `bytes` from the slot's beginning.
  void SetLayout(TensorId id, uint64_t layout, uint64_t bytes);
  // Turns a temporary's slot into IO, so that a run's values can be read. Call before Finish.
  void Expose(TensorId id) { slots_[tensors_[id].slot].role = TRINE_ROLE_IO; }
  // Gives an IO tensor's slot several memories; each run picks one of them.
  void SetAlternates(TensorId id, uint32_t alternates);
  // Adds a tensor in the same memory, without gaps, with another shape of the same size.
  TensorId AddReshape(TensorId tensor, const Shape& shape);

  // Adds a view into the same memory, `offset` bytes further. `strides` are in bytes, the first 0.
  TensorId AddView(TensorId tensor, const Shape& shape, const Shape& strides, uint64_t offset);

  void AddOp(uint32_t kind, std::vector<TensorId> in, std::vector<TensorId> out) {
    Append(kind, std::move(in), std::move(out), nullptr, 0);
  }
  // `attr` is one of the ABI's attribute structs; its struct_size is set here.
  template <class Attr>
  void AddOp(uint32_t kind, std::vector<TensorId> in, std::vector<TensorId> out, Attr attr) {
    attr.struct_size = sizeof(attr);
    Append(kind, std::move(in), std::move(out), &attr, sizeof(attr));
  }
  // Adds an op with the kind and attributes of `op`, which may belong to another graph.
  void AddOpLike(const trine_op& op, std::vector<TensorId> in, std::vector<TensorId> out);

  size_t n_tensors() const { return tensors_.size(); }
  const trine_tensor& tensor(TensorId id) const { return tensors_[id]; }
  SlotId SlotOf(TensorId id) const { return tensors_[id].slot; }
  const std::vector<trine_slot>& slots() const { return slots_; }
  size_t n_ops() const { return ops_.size(); }
  const trine_op& op(size_t i) const { return ops_[i]; }
  // Returns whether no other tensor is in the tensor's slot.
  bool AloneInSlot(TensorId id) const;
  std::vector<uint32_t> Readers(TensorId id) const;  // indices of the ops that read the tensor
  // Returns the bytes from a tensor's beginning to its end at the parameters' maxima.
  uint64_t Bytes(TensorId id) const;

  // Shares memory between temporaries. Call once, after the last op.
  void Finish();

  // Returns the graph as the ABI's struct, valid until it is changed, moved or destroyed.
  trine_graph View() const;

 private:
  void Append(uint32_t kind, std::vector<TensorId> in, std::vector<TensorId> out, const void* attr,
              size_t attr_bytes);
  int64_t MaxDim(int64_t dim) const { return dim >= 0 ? dim : params_[-dim - 1].max; }

  uint32_t numerics_;
  std::vector<trine_param> params_;
  std::vector<trine_slot> slots_;
  std::vector<trine_tensor> tensors_;
  std::vector<trine_op> ops_;
  std::deque<std::vector<TensorId>> operands_;     // ops_ point to their elements
  std::deque<std::vector<std::byte>> attributes_;  // ops_ point to their elements
};

}  // namespace trine
