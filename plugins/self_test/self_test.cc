#include "plugins/self_test/self_test.h"

#include <algorithm>
#include <memory>

#include "plugins/self_test/self_test_graph.h"
#include "trine/backend_sdk.h"

namespace trine::self_test {
namespace {

using sdk::Fail;

using BufferPtr = std::unique_ptr<trine_buffer, void (*)(trine_buffer*)>;
using PlanPtr = std::unique_ptr<trine_plan, void (*)(trine_plan*)>;

// Converts the tensor's bytes into the device's own layout and sets the layout of `tensor`. Returns
// UNIMPLEMENTED if the device has no such layout.
trine_status Pack(const trine_plugin& table, trine_device* device, uint32_t numerics,
                  const TestTensor& t, trine_tensor* tensor, std::vector<std::byte>* packed,
                  trine_error* err) {
  if (table.layout_list == nullptr || table.layout_convert == nullptr) {
    return Fail(err, TRINE_UNIMPLEMENTED, "the plugin has no packed layouts");
  }
  const trine_slot slot{TRINE_ROLE_CONSTANT, 1, t.bytes.size()};
  trine_tensor alone = *tensor;
  alone.slot = 0;
  trine_graph graph{};
  graph.struct_size = sizeof(graph);
  graph.numerics = numerics;
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
  const trine_status status = table.layout_list(device, &graph, 0, &list, err);
  if (status != TRINE_OK) return status;
  if (list.count == 0) return Fail(err, TRINE_UNIMPLEMENTED, "the tensor has no packed layout");
  packed->resize(info.packed_bytes);
  trine_layout_convert_args args{};
  args.struct_size = sizeof(args);
  args.direction = TRINE_LAYOUT_PACK;
  args.tensor = &alone;
  args.layout = tensor->layout = info.layout;
  args.row_end = static_cast<uint64_t>(reference::Rows(t.view));
  args.src = t.bytes.data();
  args.dst = packed->data();
  return table.layout_convert(device, &args, err);
}

// Runs graphs as plans of a device and compares the results with the reference.
class Runner {
 public:
  Runner(const trine_plugin& table, trine_device* device, const Options& options)
      : table_(table), device_(device), options_(options) {}

  // Returns whether the graph is to be run: nothing has failed, there is time, and the device
  // supports the graph as the options ask.
  bool Wants(const TestGraph& graph) const;
  // Runs the graph and compares. Keeps the failure.
  void Check(const TestGraph& graph);

  const Result& result() const { return result_; }

 private:
  bool exact() const { return options_.numerics == TRINE_NUMERICS_EXACT; }
  // Runs the graph on the device and copies the results into the graph's tensors.
  trine_status Run(const TestGraph& graph, trine_error* err);
  trine_status RunPlan(const trine_graph& graph, const std::vector<trine_binding>& bindings,
                       trine_error* err);

  const trine_plugin& table_;
  trine_device* device_;
  const Options& options_;
  Result result_;
};

bool Runner::Wants(const TestGraph& graph) const {
  if (!result_.failure.empty()) return false;
  if (options_.deadline && std::chrono::steady_clock::now() >= *options_.deadline) return false;
  if (!exact()) return true;
  const std::vector<trine_slot> slots = graph.PlainSlots();
  const trine_graph view = graph.Abi(options_.numerics, slots, graph.tensors());
  for (uint32_t op = 0; op < view.n_ops; ++op) {
    trine_op_support support{};
    support.struct_size = sizeof(support);
    trine_error err{};
    const trine_status status = table_.op_query(device_, &view, op, nullptr, &support, &err);
    if (status != TRINE_OK || support.support != TRINE_SUPPORT_EXACT) return false;
  }
  return true;
}

void Runner::Check(const TestGraph& graph) {
  std::vector<std::vector<std::byte>> before, expected;
  for (const TestGraph::Slot& slot : graph.slots()) before.push_back(slot.tensor->bytes);
  graph.RunReference();
  for (size_t i = 0; i < before.size(); ++i) {
    std::vector<std::byte>& bytes = graph.slots()[i].tensor->bytes;
    expected.push_back(bytes);
    std::copy(before[i].begin(), before[i].end(), bytes.begin());  // in place: views point here
  }
  trine_error err{};
  const trine_status status = Run(graph, &err);
  if (exact() && status == TRINE_UNIMPLEMENTED) return;
  if (status != TRINE_OK) {
    result_.could_run = false;
    result_.failure = graph.name() + ": " + err.message;
    return;
  }
  ++result_.run;
  for (size_t i = 0; i < expected.size(); ++i) {
    const TestGraph::Slot& slot = graph.slots()[i];
    if (slot.role != TRINE_ROLE_TEMP && slot.tensor->bytes != expected[i]) {
      result_.failure = graph.name();
    }
  }
}

trine_status Runner::Run(const TestGraph& graph, trine_error* err) {
  std::vector<trine_slot> slots = graph.PlainSlots();
  std::vector<trine_tensor> tensors = graph.tensors();
  std::vector<trine_binding> bindings;
  std::vector<BufferPtr> buffers;
  for (uint32_t i = 0; i < slots.size(); ++i) {
    if (slots[i].role == TRINE_ROLE_TEMP) continue;
    const TestTensor& t = *graph.slots()[i].tensor;
    std::vector<std::byte> packed;
    if (t.packed) {
      const auto tensor = std::find_if(tensors.begin(), tensors.end(),
                                       [&](const trine_tensor& one) { return one.slot == i; });
      const trine_status status =
          Pack(table_, device_, options_.numerics, t, &*tensor, &packed, err);
      if (status != TRINE_OK) return status;
    }
    const std::vector<std::byte>& bytes = t.packed ? packed : t.bytes;
    slots[i].bytes = bytes.size();
    const trine_buffer_desc desc{sizeof(desc), TRINE_MEMORY_STATE, bytes.size()};
    trine_buffer* buffer = nullptr;
    trine_status status = table_.buffer_alloc(device_, &desc, &buffer, err);
    if (status != TRINE_OK) return status;
    buffers.emplace_back(buffer, table_.buffer_free);
    bindings.push_back({i, 0, {buffer, 0, bytes.size()}});
    status = table_.buffer_write(buffer, 0, bytes.data(), bytes.size(), err);
    if (status != TRINE_OK) return status;
  }
  trine_status status = RunPlan(graph.Abi(options_.numerics, slots, tensors), bindings, err);
  for (const trine_binding& bound : bindings) {
    if (status != TRINE_OK || slots[bound.slot].role != TRINE_ROLE_STATE) continue;
    std::vector<std::byte>& bytes = graph.slots()[bound.slot].tensor->bytes;
    status = table_.buffer_read(bound.span.buffer, 0, bytes.data(), bytes.size(), err);
  }
  return status;
}

trine_status Runner::RunPlan(const trine_graph& graph, const std::vector<trine_binding>& bindings,
                             trine_error* err) {
  trine_plan_info info{};
  info.struct_size = sizeof(info);
  trine_status status = table_.plan_query(device_, &graph, &info, err);
  if (status != TRINE_OK) return status;
  BufferPtr scratch(nullptr, table_.buffer_free);
  if (info.scratch_bytes != 0) {
    const trine_buffer_desc desc{sizeof(desc), TRINE_MEMORY_STATE, info.scratch_bytes};
    trine_buffer* buffer = nullptr;
    status = table_.buffer_alloc(device_, &desc, &buffer, err);
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
  status = table_.plan_create(device_, &desc, &made, err);
  if (status != TRINE_OK) return status;
  const PlanPtr plan(made, table_.plan_destroy);
  trine_run_args args{};
  args.struct_size = sizeof(args);
  return table_.plan_run(plan.get(), &args, err);
}

}  // namespace

Result Run(const trine_plugin& table, trine_device* device, const Options& options,
           const std::function<void(const std::string& name)>& begins) {
  Runner runner(table, device, options);
  AddCases([&](const TestGraph& graph) {
    if (!runner.Wants(graph)) return;
    begins(graph.name());
    runner.Check(graph);
  });
  return runner.result();
}

}  // namespace trine::self_test
