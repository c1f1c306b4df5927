// The graphs of a device's self-test. A graph is a few ops over tensors in host memory, each with
// the function of the reference that computes the same. Calls no driver.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "kernels/quant/test_util.h"
#include "kernels/reference/ops.h"
#include "trine/backend.h"

namespace trine::self_test {

// A tensor of a test, without gaps.
struct TestTensor {
  TestTensor(quant::Type type, std::initializer_list<int64_t> dims)
      : rank(static_cast<uint32_t>(dims.size())) {
    Shape(type, dims);
    bytes.resize(static_cast<size_t>(view.strides[3] * view.dims[3]));
    view.data = bytes.data();
  }
  // Makes a tensor that shares the memory of `other`, in another shape.
  TestTensor(TestTensor* other, std::initializer_list<int64_t> dims)
      : rank(static_cast<uint32_t>(dims.size())), base(other) {
    Shape(other->view.type, dims);
    view.data = other->view.data;
  }
  TestTensor(const TestTensor&) = delete;
  TestTensor& operator=(const TestTensor&) = delete;

  TestTensor& Floats(quant::Fill fill, quant::Random* random) {
    for (size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
      reinterpret_cast<float*>(view.data)[i] = quant::FillValue(fill, random);
    }
    return *this;
  }
  TestTensor& Weights(quant::Random* random) {
    bytes = quant::RandomWeights(view.type, view.dims[0] * reference::Rows(view), false, random);
    view.data = bytes.data();
    return *this;
  }
  TestTensor& Ints(std::initializer_list<int32_t> values) {
    std::copy(values.begin(), values.end(), reinterpret_cast<int32_t*>(view.data));
    return *this;
  }

  // Sets whether the device gets the tensor in its own layout.
  TestTensor& Packed(bool yes) {
    packed = yes;
    return *this;
  }
  // Marks a tensor that only the graph's own ops read.
  TestTensor& Temp() {
    temp = true;
    return *this;
  }

  reference::View view;
  uint32_t rank;
  std::vector<std::byte> bytes;  // empty if the tensor shares the memory of `base`
  TestTensor* base = nullptr;
  bool packed = false, temp = false;

 private:
  void Shape(quant::Type type, std::initializer_list<int64_t> dims) {
    view.type = type;
    std::copy(dims.begin(), dims.end(), view.dims);
    uint64_t row_bytes = 0;
    quant::RowBytes(type, view.dims[0], &row_bytes);
    view.strides[1] = static_cast<int64_t>(row_bytes);
    view.strides[2] = view.strides[1] * view.dims[1];
    view.strides[3] = view.strides[2] * view.dims[2];
  }
};

struct NoAttr {
  uint32_t struct_size;
};

// A graph over tensors that must outlive it. Each tensor has a slot, or shares the slot of its
// `base`. The self-test compares all tensors that the ops write, except those marked Temp.
class TestGraph {
 public:
  explicit TestGraph(std::string name) : name_(std::move(name)) {}

  // Adds an op. A null input is absent. `reference` must do the same to the tensors here.
  template <class Attr>
  TestGraph& Op(uint32_t kind, const std::vector<TestTensor*>& in,
                const std::vector<TestTensor*>& out, Attr attr, std::function<void()> reference) {
    attr.struct_size = sizeof(attr);
    const auto* bytes = reinterpret_cast<const std::byte*>(&attr);
    AddStep(kind, in, out, {bytes, bytes + sizeof(attr)}, std::move(reference));
    return *this;
  }

  struct Slot {
    TestTensor* tensor;
    uint32_t role;
  };
  const std::string& name() const { return name_; }
  const std::vector<Slot>& slots() const { return slots_; }
  const std::vector<trine_tensor>& tensors() const { return tensors_; }

  void RunReference() const;

  // Returns the graph for the ABI. `slots` and `tensors` must outlive the result. They may differ
  // from the graph's own only in which tensors are packed.
  trine_graph Abi(uint32_t numerics, const std::vector<trine_slot>& slots,
                  const std::vector<trine_tensor>& tensors) const;
  std::vector<trine_slot> PlainSlots() const;

 private:
  struct Step {
    std::vector<uint32_t> in, out;
    std::vector<std::byte> attr;
    std::function<void()> reference;
  };

  void AddStep(uint32_t kind, const std::vector<TestTensor*>& in,
               const std::vector<TestTensor*>& out, std::vector<std::byte> attr,
               std::function<void()> reference);
  uint32_t NumberOf(TestTensor* tensor);
  uint32_t SlotOf(TestTensor* tensor);

  std::string name_;
  std::vector<Slot> slots_;
  std::vector<TestTensor*> known_;  // tensors by number
  std::vector<trine_tensor> tensors_;
  std::deque<Step> steps_;  // a deque, because ops_ points into its elements
  std::vector<trine_op> ops_;
};

// A function that receives a graph. The graph's tensors live only until the call returns.
using TakeGraph = std::function<void(const TestGraph&)>;

// Calls `take` with each graph of the self-test, always the same ones, in the same order. They use
// all kinds of ops, alone and as backends put them together, in shapes of decoding, of prompts and
// of embedding models.
void AddCases(const TakeGraph& take);

// Does the same with the graphs that the host adds: each type of weights, and each op and way of an
// op that AddCases does not run by itself.
void AddSingleOps(const TakeGraph& take);

}  // namespace trine::self_test
