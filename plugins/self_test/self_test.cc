#include "plugins/self_test/self_test.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "plugins/self_test/self_test_graph.h"
#include "trine/backend_sdk.h"

namespace trine::self_test {
namespace {

using sdk::Fail;

using BufferPtr = std::unique_ptr<trine_buffer, void (*)(trine_buffer*)>;
using PlanPtr = std::unique_ptr<trine_plan, void (*)(trine_plan*)>;

// Calls into the plugin. An exception breaches the ABI and becomes INTERNAL.
template <class Call>
trine_status Guarded(trine_error* err, Call call) {
  try {
    return call(err);
  } catch (...) {
    return Fail(err, TRINE_INTERNAL, "the plugin threw an exception across the ABI");
  }
}

std::string Message(const trine_error& err) {
  return std::string(err.message, strnlen(err.message, sizeof(err.message)));
}

// Returns whether a layout's numbers can be right for a tensor of `plain` bytes and `rows` rows.
// Plugins that compute with codes of one byte per value take a few times the plain bytes.
bool MakesSense(const trine_layout_info& info, uint64_t plain, uint64_t rows) {
  const uint64_t groups = info.group_rows == 0 ? 0 : (rows + info.group_rows - 1) / info.group_rows;
  return groups != 0 && info.group_bytes != 0 && info.packed_bytes / info.group_bytes >= groups &&
         info.packed_bytes / 64 <= plain + (uint64_t{1} << 20);
}

// A graph as it goes to the device: some tensors are packed in the device's layouts.
struct Prepared {
  std::vector<trine_slot> slots;
  std::vector<trine_tensor> tensors;
  std::vector<std::vector<std::byte>> packed;  // by slot; empty: the tensor's own bytes
};

// Runs graphs as plans of a device and compares the results with the reference.
class Runner {
 public:
  Runner(const trine_plugin& table, trine_device* device, const Options& options,
         const std::function<void(const std::string& name)>& begins)
      : table_(table), device_(device), options_(options), begins_(begins) {}

  void Take(const TestGraph& graph);
  Result result() const;

 private:
  bool exact() const { return options_.numerics == TRINE_NUMERICS_EXACT; }
  // Notes that the graph failed, or could not be run.
  void Fails(const TestGraph& graph) { result_.failure = graph.name(); }
  void CannotRun(const TestGraph& graph, const trine_error& err) {
    result_.could_run = false;
    result_.failure = graph.name() + ": " + Message(err);
  }

  // Packs the tensors that are to be packed. Sets *offered to whether the device has such layouts.
  trine_status Prepare(const TestGraph& graph, Prepared* prepared, bool* offered, trine_error* err);
  trine_status Pack(const TestTensor& t, trine_tensor* tensor, std::vector<std::byte>* packed,
                    bool* offered, trine_error* err);
  // Sets *all to whether the device says that each op of the graph is exact.
  trine_status AskForOps(const TestGraph& graph, const Prepared& prepared, bool* all,
                         trine_error* err);
  void Check(const TestGraph& graph, const Prepared& prepared);
  // Runs the graph on the device and copies the results into the graph's tensors.
  trine_status Run(const TestGraph& graph, const Prepared& prepared, trine_error* err);
  trine_status RunPlan(const trine_graph& graph, const std::vector<trine_binding>& bindings,
                       trine_error* err);
  trine_status Allocate(uint64_t bytes, BufferPtr* buffer, trine_error* err);

  const trine_plugin& table_;
  trine_device* device_;
  const Options& options_;
  const std::function<void(const std::string& name)>& begins_;
  Result result_;
  bool late_ = false;
};

void Runner::Take(const TestGraph& graph) {
  if (!result_.failure.empty() || late_) return;
  // At least one graph is tested, so that each test gets farther than the one before it.
  const bool begun = result_.next > options_.first;
  late_ = begun && options_.deadline && std::chrono::steady_clock::now() >= *options_.deadline;
  if (late_) return;
  const int number = result_.next++;
  if (number < options_.first) return;
  begins_(graph.name());
  Prepared prepared;
  bool offered = true, supported = true;
  trine_error err{};
  trine_status status = Prepare(graph, &prepared, &offered, &err);
  if (status == TRINE_OK && exact() && offered) {
    status = AskForOps(graph, prepared, &supported, &err);
  }
  if (status != TRINE_OK) return CannotRun(graph, err);
  if (exact() && !(offered && supported)) return;
  Check(graph, prepared);
}

Result Runner::result() const {
  Result result = result_;
  result.complete = result.failure.empty() && !late_;
  return result;
}

trine_status Runner::Prepare(const TestGraph& graph, Prepared* prepared, bool* offered,
                             trine_error* err) {
  prepared->slots = graph.PlainSlots();
  prepared->tensors = graph.tensors();
  prepared->packed.resize(prepared->slots.size());
  for (trine_tensor& tensor : prepared->tensors) {
    const TestTensor& t = *graph.slots()[tensor.slot].tensor;
    if (!t.packed) continue;
    std::vector<std::byte>& packed = prepared->packed[tensor.slot];
    const trine_status status = Pack(t, &tensor, &packed, offered, err);
    if (status != TRINE_OK || !*offered) return status;
    prepared->slots[tensor.slot].bytes = packed.size();
  }
  return TRINE_OK;
}

// Converts the tensor's bytes into the device's own layout and sets the layout of `tensor`.
trine_status Runner::Pack(const TestTensor& t, trine_tensor* tensor, std::vector<std::byte>* packed,
                          bool* offered, trine_error* err) {
  if (table_.layout_list == nullptr || table_.layout_convert == nullptr) {
    *offered = false;
    return exact() ? TRINE_OK : Fail(err, TRINE_INTERNAL, "the plugin has no packed layouts");
  }
  const trine_slot slot{TRINE_ROLE_CONSTANT, 1, t.bytes.size()};
  trine_tensor alone = *tensor;
  alone.slot = 0;
  trine_graph graph{};
  graph.struct_size = sizeof(graph);
  graph.numerics = options_.numerics;
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
  const trine_status status = Guarded(
      err, [&](trine_error* e) { return table_.layout_list(device_, &graph, 0, &list, e); });
  if (status != TRINE_OK) return status;
  if (list.count == 0) {
    *offered = false;
    return exact() ? TRINE_OK : Fail(err, TRINE_INTERNAL, "the tensor has no packed layout");
  }
  const auto rows = static_cast<uint64_t>(reference::Rows(t.view));
  if (!MakesSense(info, t.bytes.size(), rows)) {
    return Fail(err, TRINE_INTERNAL, "a packed layout has impossible numbers");
  }
  packed->resize(info.packed_bytes);
  trine_layout_convert_args args{};
  args.struct_size = sizeof(args);
  args.direction = TRINE_LAYOUT_PACK;
  args.tensor = &alone;
  args.layout = tensor->layout = info.layout;
  args.row_end = rows;
  args.src = t.bytes.data();
  args.dst = packed->data();
  return Guarded(err, [&](trine_error* e) { return table_.layout_convert(device_, &args, e); });
}

trine_status Runner::AskForOps(const TestGraph& graph, const Prepared& prepared, bool* all,
                               trine_error* err) {
  const trine_graph view = graph.Abi(options_.numerics, prepared.slots, prepared.tensors);
  for (uint32_t op = 0; op < view.n_ops && *all; ++op) {
    trine_op_support support{};
    support.struct_size = sizeof(support);
    const trine_status status = Guarded(err, [&](trine_error* e) {
      return table_.op_query(device_, &view, op, nullptr, &support, e);
    });
    if (status != TRINE_OK) return status;
    *all = support.support == TRINE_SUPPORT_EXACT;
  }
  return TRINE_OK;
}

void Runner::Check(const TestGraph& graph, const Prepared& prepared) {
  std::vector<std::vector<std::byte>> before, expected;
  for (const TestGraph::Slot& slot : graph.slots()) before.push_back(slot.tensor->bytes);
  graph.RunReference();
  for (size_t i = 0; i < before.size(); ++i) {
    std::vector<std::byte>& bytes = graph.slots()[i].tensor->bytes;
    expected.push_back(bytes);
    std::copy(before[i].begin(), before[i].end(), bytes.begin());  // in place: views point here
  }
  trine_error err{};
  if (Run(graph, prepared, &err) != TRINE_OK) return CannotRun(graph, err);
  ++result_.run;
  for (size_t i = 0; i < expected.size(); ++i) {
    const TestGraph::Slot& slot = graph.slots()[i];
    if (slot.role != TRINE_ROLE_TEMP && slot.tensor->bytes != expected[i]) Fails(graph);
  }
}

trine_status Runner::Allocate(uint64_t bytes, BufferPtr* buffer, trine_error* err) {
  const trine_buffer_desc desc{sizeof(desc), TRINE_MEMORY_STATE, bytes};
  trine_buffer* made = nullptr;
  const trine_status status =
      Guarded(err, [&](trine_error* e) { return table_.buffer_alloc(device_, &desc, &made, e); });
  if (status != TRINE_OK) return status;
  if (made == nullptr) return Fail(err, TRINE_INTERNAL, "buffer_alloc gave no buffer");
  buffer->reset(made);
  return TRINE_OK;
}

trine_status Runner::Run(const TestGraph& graph, const Prepared& prepared, trine_error* err) {
  std::vector<trine_binding> bindings;
  std::vector<BufferPtr> buffers;
  for (uint32_t i = 0; i < prepared.slots.size(); ++i) {
    if (prepared.slots[i].role == TRINE_ROLE_TEMP) continue;
    const std::vector<std::byte>& bytes =
        prepared.packed[i].empty() ? graph.slots()[i].tensor->bytes : prepared.packed[i];
    BufferPtr& buffer = buffers.emplace_back(nullptr, table_.buffer_free);
    trine_status status = Allocate(bytes.size(), &buffer, err);
    if (status != TRINE_OK) return status;
    bindings.push_back({i, 0, {buffer.get(), 0, bytes.size()}});
    status = Guarded(err, [&](trine_error* e) {
      return table_.buffer_write(buffer.get(), 0, bytes.data(), bytes.size(), e);
    });
    if (status != TRINE_OK) return status;
  }
  const trine_graph view = graph.Abi(options_.numerics, prepared.slots, prepared.tensors);
  trine_status status = RunPlan(view, bindings, err);
  for (const trine_binding& bound : bindings) {
    if (status != TRINE_OK || prepared.slots[bound.slot].role != TRINE_ROLE_STATE) continue;
    std::vector<std::byte>& bytes = graph.slots()[bound.slot].tensor->bytes;
    status = Guarded(err, [&](trine_error* e) {
      return table_.buffer_read(bound.span.buffer, 0, bytes.data(), bytes.size(), e);
    });
  }
  return status;
}

trine_status Runner::RunPlan(const trine_graph& graph, const std::vector<trine_binding>& bindings,
                             trine_error* err) {
  trine_plan_info info{};
  info.struct_size = sizeof(info);
  trine_status status =
      Guarded(err, [&](trine_error* e) { return table_.plan_query(device_, &graph, &info, e); });
  if (status != TRINE_OK) return status;
  BufferPtr scratch(nullptr, table_.buffer_free);
  if (info.scratch_bytes != 0) {
    status = Allocate(info.scratch_bytes, &scratch, err);
    if (status != TRINE_OK) return status;
  }
  trine_plan_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.n_bindings = static_cast<uint32_t>(bindings.size());
  desc.binding_stride = sizeof(trine_binding);
  desc.graph = &graph;
  desc.bindings = bindings.data();
  desc.scratch = {scratch.get(), 0, info.scratch_bytes};
  trine_plan* made = nullptr;
  status =
      Guarded(err, [&](trine_error* e) { return table_.plan_create(device_, &desc, &made, e); });
  if (status != TRINE_OK) return status;
  if (made == nullptr) return Fail(err, TRINE_INTERNAL, "plan_create gave no plan");
  const PlanPtr plan(made, table_.plan_destroy);
  trine_run_args args{};
  args.struct_size = sizeof(args);
  return Guarded(err, [&](trine_error* e) { return table_.plan_run(plan.get(), &args, e); });
}

}  // namespace

Result Run(const trine_plugin& table, trine_device* device, const Options& options,
           const std::function<void(const std::string& name)>& begins) {
  Runner runner(table, device, options, begins);
  const TakeGraph take = [&](const TestGraph& graph) { runner.Take(graph); };
  AddCases(take);
  if (options.numerics == TRINE_NUMERICS_EXACT) AddSingleOps(take);
  return runner.result();
}

}  // namespace trine::self_test
