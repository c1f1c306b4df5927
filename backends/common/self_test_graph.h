// Small graphs of ops over tensors in host memory, with what the reference makes of them: what a
// device's self-test consists of. No driver is asked.
#ifndef TRINE_BACKENDS_COMMON_SELF_TEST_GRAPH_H_
#define TRINE_BACKENDS_COMMON_SELF_TEST_GRAPH_H_

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

namespace trine::backends {

// A dense tensor.
struct TestTensor {
  TestTensor(quant::Type type, std::initializer_list<int64_t> dims)
      : rank(static_cast<uint32_t>(dims.size())) {
    Shape(type, dims);
    bytes.resize(static_cast<size_t>(view.strides[3] * view.dims[3]));
    view.data = bytes.data();
  }
  // The memory of `other` in another shape.
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

  // The device gets it in its own layout.
  TestTensor& Packed(bool yes) {
    packed = yes;
    return *this;
  }
  // Nobody but the graph's own ops reads it.
  TestTensor& Temp() {
    temp = true;
    return *this;
  }

  reference::View view;
  uint32_t rank;
  std::vector<std::byte> bytes;  // empty where the memory is another's
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

// Tensors outlive it. Each has a slot, or that of the one whose memory it has; what ops write is
// compared, but for what is Temp.
class TestGraph {
 public:
  explicit TestGraph(std::string name) : name_(std::move(name)) {}

  // Null where an input is left out. `reference` does the same to the tensors here.
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

  // Over these slots and tensors, which are its own but for what is packed.
  trine_graph Abi(const std::vector<trine_slot>& slots,
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
  std::vector<TestTensor*> known_;  // by number
  std::vector<trine_tensor> tensors_;
  std::deque<Step> steps_;  // ops point into it
  std::vector<trine_op> ops_;
};

}  // namespace trine::backends

#endif  // TRINE_BACKENDS_COMMON_SELF_TEST_GRAPH_H_
