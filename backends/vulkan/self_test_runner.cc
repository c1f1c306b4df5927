#include "backends/vulkan/self_test_runner.h"

#include <memory>
#include <string>

#include "backends/vulkan/buffers.h"
#include "backends/vulkan/handles.h"
#include "backends/vulkan/layouts.h"
#include "backends/vulkan/plan.h"

namespace trine::vulkan {
namespace {

trine_tensor AbiTensor(const TestTensor& t, uint32_t slot) {
  trine_tensor tensor{};
  tensor.dtype = static_cast<uint32_t>(t.view.type);
  tensor.rank = TRINE_MAX_RANK;
  tensor.slot = slot;
  std::copy(t.view.dims, t.view.dims + 4, tensor.dims);
  return tensor;
}

struct BufferFreer {
  void operator()(trine_buffer* buffer) const { BufferFree(buffer); }
};
struct PlanFreer {
  void operator()(trine_plan* plan) const { PlanDestroy(plan); }
};

// The tensor's bytes in the device's own layout, which `tensor` has then.
trine_status Pack(trine_device* device, const TestTensor& t, trine_tensor* tensor,
                  std::vector<std::byte>* packed, trine_error* err) {
  const trine_slot slot{TRINE_ROLE_CONSTANT, 1, t.bytes.size()};
  trine_tensor alone = *tensor;
  alone.slot = 0;
  trine_graph graph{};
  graph.struct_size = sizeof(graph);
  graph.numerics = TRINE_NUMERICS_FAST;
  graph.n_slots = 1;
  graph.slot_stride = sizeof(slot);
  graph.slots = &slot;
  graph.n_tensors = 1;
  graph.tensor_stride = sizeof(alone);
  graph.tensors = &alone;
  graph.op_stride = sizeof(trine_op);
  graph.param_stride = sizeof(trine_param);
  trine_layout_info info{};
  trine_layout_list list{};
  list.struct_size = sizeof(list);
  list.stride = sizeof(info);
  list.capacity = 1;
  list.infos = &info;
  const trine_status status = LayoutList(device, &graph, 0, &list, err);
  if (status != TRINE_OK) return status;
  if (list.count == 0) return Fail(err, TRINE_INTERNAL, "the tensor has no packed layout");
  packed->resize(info.packed_bytes);
  trine_layout_convert_args args{};
  args.struct_size = sizeof(args);
  args.direction = TRINE_LAYOUT_PACK;
  args.tensor = &alone;
  args.layout = tensor->layout = info.layout;
  args.row_end = static_cast<uint64_t>(reference::Rows(t.view));
  args.src = t.bytes.data();
  args.dst = packed->data();
  return LayoutConvert(device, &args, err);
}

}  // namespace

void SelfTestRunner::CheckOp(const char* name, uint32_t kind,
                             const std::vector<const TestTensor*>& in,
                             const std::vector<TestTensor*>& out, const void* attr,
                             const std::function<void()>& reference) {
  if (!result_.failure.empty()) return;
  std::vector<std::vector<std::byte>> before, expected;
  for (const TestTensor* t : out) before.push_back(t->bytes);
  reference();
  for (size_t i = 0; i < out.size(); ++i) {
    expected.push_back(out[i]->bytes);
    std::copy(before[i].begin(), before[i].end(), out[i]->bytes.begin());
  }
  trine_error err{};
  const trine_status status = Run(kind, in, out, attr, &err);
  if (status != TRINE_OK) {
    result_ = {false, std::string(name) + ": " + err.message};
    return;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i]->bytes != expected[i]) result_.failure = name;
  }
}

trine_status SelfTestRunner::Run(uint32_t kind, const std::vector<const TestTensor*>& in,
                                 const std::vector<TestTensor*>& out, const void* attr,
                                 trine_error* err) {
  std::vector<trine_slot> slots;
  std::vector<trine_tensor> tensors;
  std::vector<trine_binding> bindings;
  std::vector<std::unique_ptr<trine_buffer, BufferFreer>> buffers;
  std::vector<uint32_t> ins, outs;
  const auto add = [&](const TestTensor& t, uint32_t role) -> trine_status {
    const auto slot = static_cast<uint32_t>(slots.size());
    trine_tensor tensor = AbiTensor(t, slot);
    std::vector<std::byte> packed;
    if (t.packed) {
      const trine_status status = Pack(device_, t, &tensor, &packed, err);
      if (status != TRINE_OK) return status;
    }
    const std::vector<std::byte>& bytes = t.packed ? packed : t.bytes;
    const trine_buffer_desc desc{sizeof(desc), TRINE_MEMORY_STATE, bytes.size()};
    trine_buffer* buffer = nullptr;
    const trine_status status = BufferAlloc(device_, &desc, &buffer, err);
    if (status != TRINE_OK) return status;
    buffers.emplace_back(buffer);
    slots.push_back({role, 1, bytes.size()});
    tensors.push_back(tensor);
    bindings.push_back({slot, 0, {buffer, 0, bytes.size()}});
    return BufferWrite(buffer, 0, bytes.data(), bytes.size(), err);
  };
  for (const TestTensor* t : in) {
    if (t == nullptr) {
      ins.push_back(TRINE_NONE);
      continue;
    }
    ins.push_back(static_cast<uint32_t>(tensors.size()));
    const trine_status status = add(*t, TRINE_ROLE_CONSTANT);
    if (status != TRINE_OK) return status;
  }
  for (const TestTensor* t : out) {
    outs.push_back(static_cast<uint32_t>(tensors.size()));
    const trine_status status = add(*t, TRINE_ROLE_STATE);
    if (status != TRINE_OK) return status;
  }
  trine_op op{};
  op.kind = kind;
  op.n_in = static_cast<uint32_t>(ins.size());
  op.n_out = static_cast<uint32_t>(outs.size());
  op.in = ins.data();
  op.out = outs.data();
  op.attr = attr;
  trine_graph graph{};
  graph.struct_size = sizeof(graph);
  graph.numerics = TRINE_NUMERICS_FAST;  // whether it is exact is what is being found out
  graph.n_slots = static_cast<uint32_t>(slots.size());
  graph.slot_stride = sizeof(trine_slot);
  graph.slots = slots.data();
  graph.n_tensors = static_cast<uint32_t>(tensors.size());
  graph.tensor_stride = sizeof(trine_tensor);
  graph.tensors = tensors.data();
  graph.n_ops = 1;
  graph.op_stride = sizeof(trine_op);
  graph.ops = &op;
  graph.param_stride = sizeof(trine_param);
  return RunGraph(graph, bindings, buffers.size() - out.size(), out, err);
}

trine_status SelfTestRunner::RunGraph(const trine_graph& graph,
                                      const std::vector<trine_binding>& bindings, size_t first_out,
                                      const std::vector<TestTensor*>& out, trine_error* err) {
  trine_plan_info info{};
  info.struct_size = sizeof(info);
  trine_status status = PlanQuery(device_, &graph, &info, err);
  if (status != TRINE_OK) return status;
  std::unique_ptr<trine_buffer, BufferFreer> scratch;
  if (info.scratch_bytes != 0) {
    const trine_buffer_desc desc{sizeof(desc), TRINE_MEMORY_STATE, info.scratch_bytes};
    trine_buffer* buffer = nullptr;
    status = BufferAlloc(device_, &desc, &buffer, err);
    if (status != TRINE_OK) return status;
    scratch.reset(buffer);
  }
  trine_plan_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.n_bindings = static_cast<uint32_t>(bindings.size());
  desc.binding_stride = sizeof(trine_binding);
  desc.graph = &graph;
  desc.bindings = bindings.data();
  desc.scratch = {scratch.get(), 0, info.scratch_bytes};
  trine_plan* made = nullptr;
  status = PlanCreate(device_, &desc, &made, err);
  if (status != TRINE_OK) return status;
  const std::unique_ptr<trine_plan, PlanFreer> plan(made);
  trine_run_args args{};
  args.struct_size = sizeof(args);
  status = PlanRun(plan.get(), &args, err);
  for (size_t i = 0; status == TRINE_OK && i < out.size(); ++i) {
    status = BufferRead(bindings[first_out + i].span.buffer, 0, out[i]->bytes.data(),
                        out[i]->bytes.size(), err);
  }
  return status;
}

}  // namespace trine::vulkan
