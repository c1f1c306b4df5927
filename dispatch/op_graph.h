// A graph of ops as a host builds it: owns everything the ABI's trine_graph points to.
//
// Temporary tensors are written down as if each had memory of its own; Finish() gives tensors whose
// lives do not overlap the same slot, so that a segment of any depth needs the scratch of one
// layer. Not thread-safe.
#ifndef TRINE_DISPATCH_OP_GRAPH_H_
#define TRINE_DISPATCH_OP_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <vector>

#include "trine/backend.h"

namespace trine {

using TensorId = uint32_t;
using SlotId = uint32_t;
using Shape = std::vector<int64_t>;  // innermost first; a negative dimension is a parameter

class OpGraph {
 public:
  OpGraph() = default;
  OpGraph(OpGraph&&) = default;
  OpGraph& operator=(OpGraph&&) = default;

  // Returns the dimension that stands for the parameter.
  int64_t AddParam(uint32_t kind, int64_t min, int64_t max);
  uint32_t n_params() const { return static_cast<uint32_t>(params_.size()); }
  const std::vector<trine_param>& params() const { return params_; }

  // A tensor, packed, at `offset` bytes into a slot of its own of this role.
  TensorId AddTensor(uint32_t role, uint32_t dtype, const Shape& shape, uint64_t offset = 0,
                     uint32_t alternates = 1);
  TensorId AddTemp(const Shape& shape) {
    return AddTensor(TRINE_ROLE_TEMP, TRINE_DTYPE_F32, shape);
  }
  // Moves the only tensor of its slot: where a weight lies is known when it has been placed.
  void SetOffset(TensorId id, uint64_t offset);
  // Gives the only tensor of its slot a layout of the device's own, in which it takes `bytes` from
  // the slot's beginning; or PLAIN again.
  void SetLayout(TensorId id, uint64_t layout, uint64_t bytes);
  // Makes a temporary's slot IO: what it holds can be seen after a run. Before Finish.
  void Expose(TensorId id) { slots_[tensors_[id].slot].role = TRINE_ROLE_IO; }
  // Gives an IO tensor's slot so many memories, of which each run picks one.
  void SetAlternates(TensorId id, uint32_t alternates);
  // The same memory, packed in another shape of the same size.
  TensorId AddReshape(TensorId tensor, const Shape& shape);

  // Part of the same memory: `strides` in bytes, the first of them 0, `offset` bytes further on.
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
  // Of another graph's kind and attributes.
  void AddOpLike(const trine_op& op, std::vector<TensorId> in, std::vector<TensorId> out);

  size_t n_tensors() const { return tensors_.size(); }
  const trine_tensor& tensor(TensorId id) const { return tensors_[id]; }
  SlotId SlotOf(TensorId id) const { return tensors_[id].slot; }
  const std::vector<trine_slot>& slots() const { return slots_; }
  size_t n_ops() const { return ops_.size(); }
  const trine_op& op(size_t i) const { return ops_[i]; }
  // Whether no other tensor views its slot.
  bool AloneInSlot(TensorId id) const;
  std::vector<uint32_t> Readers(TensorId id) const;  // ops it is an input of
  // Bytes from a tensor's beginning to its end at the parameters' maxima.
  uint64_t Bytes(TensorId id) const;

  // Shares memory between temporaries. Call once, when the last op is in.
  void Finish();

  // The ABI's form; valid until the graph is changed, moved or destroyed.
  trine_graph View(uint32_t numerics) const;

 private:
  void Append(uint32_t kind, std::vector<TensorId> in, std::vector<TensorId> out, const void* attr,
              size_t attr_bytes);
  int64_t MaxDim(int64_t dim) const { return dim >= 0 ? dim : params_[-dim - 1].max; }

  std::vector<trine_param> params_;
  std::vector<trine_slot> slots_;
  std::vector<trine_tensor> tensors_;
  std::vector<trine_op> ops_;
  std::deque<std::vector<TensorId>> operands_;     // what ops_ point to
  std::deque<std::vector<std::byte>> attributes_;  // likewise
};

}  // namespace trine

#endif  // TRINE_DISPATCH_OP_GRAPH_H_
