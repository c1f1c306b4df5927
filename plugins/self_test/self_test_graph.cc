#include "plugins/self_test/self_test_graph.h"

namespace trine::self_test {

uint32_t TestGraph::SlotOf(TestTensor* tensor) {
  TestTensor* owner = tensor->base != nullptr ? tensor->base : tensor;
  for (uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].tensor == owner) return i;
  }
  slots_.push_back(
      {owner, owner->temp ? uint32_t{TRINE_ROLE_TEMP} : uint32_t{TRINE_ROLE_CONSTANT}});
  return static_cast<uint32_t>(slots_.size() - 1);
}

uint32_t TestGraph::NumberOf(TestTensor* tensor) {
  if (tensor == nullptr) return TRINE_NONE;
  const auto found = std::find(known_.begin(), known_.end(), tensor);
  if (found != known_.end()) return static_cast<uint32_t>(found - known_.begin());
  trine_tensor abi{};
  abi.dtype = static_cast<uint32_t>(tensor->view.type);
  abi.rank = tensor->rank;
  abi.slot = SlotOf(tensor);
  std::copy(tensor->view.dims, tensor->view.dims + tensor->rank, abi.dims);
  known_.push_back(tensor);
  tensors_.push_back(abi);
  return static_cast<uint32_t>(tensors_.size() - 1);
}

void TestGraph::AddStep(uint32_t kind, const std::vector<TestTensor*>& in,
                        const std::vector<TestTensor*>& out, std::vector<std::byte> attr,
                        std::function<void()> reference) {
  Step& step = steps_.emplace_back();
  for (TestTensor* tensor : in) step.in.push_back(NumberOf(tensor));
  for (TestTensor* tensor : out) {
    step.out.push_back(NumberOf(tensor));
    Slot& slot = slots_[tensors_[step.out.back()].slot];
    if (!slot.tensor->temp) slot.role = TRINE_ROLE_STATE;
  }
  step.attr = std::move(attr);
  step.reference = std::move(reference);
  trine_op op{};
  op.kind = kind;
  op.n_in = static_cast<uint32_t>(step.in.size());
  op.n_out = static_cast<uint32_t>(step.out.size());
  op.in = step.in.data();
  op.out = step.out.data();
  op.attr = step.attr.data();
  ops_.push_back(op);
}

void TestGraph::RunReference() const {
  for (const Step& step : steps_) step.reference();
}

std::vector<trine_slot> TestGraph::PlainSlots() const {
  std::vector<trine_slot> slots;
  for (const Slot& slot : slots_) slots.push_back({slot.role, 1, slot.tensor->bytes.size()});
  return slots;
}

trine_graph TestGraph::Abi(uint32_t numerics, const std::vector<trine_slot>& slots,
                           const std::vector<trine_tensor>& tensors) const {
  trine_graph graph{};
  graph.struct_size = sizeof(graph);
  graph.numerics = numerics;
  graph.n_slots = static_cast<uint32_t>(slots.size());
  graph.slot_stride = sizeof(trine_slot);
  graph.slots = slots.data();
  graph.n_tensors = static_cast<uint32_t>(tensors.size());
  graph.tensor_stride = sizeof(trine_tensor);
  graph.tensors = tensors.data();
  graph.n_ops = static_cast<uint32_t>(ops_.size());
  graph.op_stride = sizeof(trine_op);
  graph.ops = ops_.data();
  graph.param_stride = sizeof(trine_param);
  return graph;
}

}  // namespace trine::self_test
