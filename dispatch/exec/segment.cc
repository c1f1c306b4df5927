#include "dispatch/exec/segment.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugins/device_text.h"
#include "trine/backend_sdk.h"

namespace trine {
namespace {

uint64_t PageBytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

// Returns true when the plugin has tried to import this kind of memory and failed.
bool SeenToFail(const trine_device_info& info, bool read_only) {
  const uint32_t kind = read_only ? TRINE_IMPORTS_READ_ONLY : TRINE_IMPORTS_WRITABLE;
  return (info.imports & TRINE_IMPORTS_TRIED) != 0 && (info.imports & kind) == 0;
}

uint64_t RoundUp(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

// Returns the least support for an op of a graph with these numerics.
uint32_t LeastSupport(uint32_t numerics) {
  return numerics == TRINE_NUMERICS_EXACT ? TRINE_SUPPORT_EXACT : TRINE_SUPPORT_FAST;
}

bool Supports(const Device& device, const trine_graph& view, uint32_t op, uint32_t least) {
  const auto support = device.QueryOp(view, op);
  return support.ok() && support->support >= least;
}

void Append(std::string* text, const void* data, size_t bytes) {
  text->append(static_cast<const char*>(data), bytes);
}

// Returns what a device can know an op by: its kind, its attributes, its tensors, and which of them
// share a slot. Layers repeat, so a graph has few kinds of ops that differ in this.
std::string SignatureOf(const trine_graph& view, const trine_op& op) {
  constexpr uint64_t kMostAligned = 4096;
  std::string text;
  std::map<uint32_t, uint32_t> slots;  // numbered in the order in which the op names them
  Append(&text, &op.kind, sizeof(op.kind));
  Append(&text, &op.n_in, sizeof(op.n_in));
  const auto append_tensors = [&](const uint32_t* tensors, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
      if (tensors[i] == TRINE_NONE) {
        text += "none";
        continue;
      }
      trine_tensor t = view.tensors[tensors[i]];
      const uint32_t role = view.slots[t.slot].role;
      t.slot = slots.try_emplace(t.slot, static_cast<uint32_t>(slots.size())).first->second;
      t.offset %= kMostAligned;
      Append(&text, &t, sizeof(t));
      Append(&text, &role, sizeof(role));
    }
  };
  append_tensors(op.in, op.n_in);
  append_tensors(op.out, op.n_out);
  if (op.attr != nullptr) Append(&text, op.attr, *static_cast<const uint32_t*>(op.attr));
  return text;
}

// Returns why the device can't run the graph: the first op that it refuses. Asks once for ops that
// are alike, because a plugin may read the whole graph for each answer.
absl::Status CheckSupport(const Device& device, const trine_graph& view) {
  const uint32_t wanted = LeastSupport(view.numerics);
  std::set<std::string> asked;
  for (uint32_t i = 0; i < view.n_ops; ++i) {
    if (!asked.insert(SignatureOf(view, view.ops[i])).second) continue;
    const auto support = device.QueryOp(view, i);
    if (!support.ok()) return support.status();
    if (support->support >= wanted) continue;
    const std::string op = sdk::OpName(view.ops[i].kind);
    std::string reason = support->support == TRINE_SUPPORT_NO
                             ? std::string(support->reason)
                             : "its result is not exact, and --numerics fast was not given";
    const std::string name = op + ": ";  // the plugin may begin with it, too
    if (reason.rfind(name, 0) == 0) reason.erase(0, name.size());
    // The name that the user types; a device that the host has not named has its chip's.
    const std::string device_name = device.label().empty() ? device.info().name : device.label();
    return absl::UnimplementedError(absl::StrCat(device_name, " can't run ", op, ": ", reason));
  }
  return absl::OkStatus();
}

}  // namespace

const char* WeightPathName(WeightPath path) {
  switch (path) {
    case WeightPath::kFile:
      return "file";
    case WeightPath::kArena:
      return "arena";
    case WeightPath::kCopy:
      break;
  }
  return "copy";
}

bool MayImport(const trine_device_info& info, bool read_only) {
  // Imported memory would come over a bus at each run. That is right for weights that are streamed
  // on purpose, but not for keeping a model's weights.
  if ((info.flags & TRINE_DEVICE_UNIFIED_MEMORY) == 0) return false;
  if (info.import_alignment == 0) return false;
  if (read_only && info.import_alignment > PageBytes()) return false;
  return !SeenToFail(info, read_only);
}

std::string ImportRefusal(const trine_device_info& info) {
  std::string refusal = FieldText(info.import_refusal);
  const bool unified = (info.flags & TRINE_DEVICE_UNIFIED_MEMORY) != 0;
  if (!unified || info.import_alignment <= PageBytes() || SeenToFail(info, true)) return refusal;
  absl::StrAppend(&refusal, refusal.empty() ? "" : "; ",
                  "mapped files: they begin at multiples of ", PageBytes(),
                  " bytes, and the device imports at multiples of ", info.import_alignment);
  return refusal;
}

WeightPath ExpectedWeightPath(const trine_device_info& info) {
  if (MayImport(info, true)) return WeightPath::kFile;
  return MayImport(info, false) ? WeightPath::kArena : WeightPath::kCopy;
}

std::string DescribeWeightPath(const trine_device_info& info) {
  const std::string refusal = ImportRefusal(info);
  const std::string why = refusal.empty() ? "" : absl::StrCat(" (", refusal, ")");
  switch (ExpectedWeightPath(info)) {
    case WeightPath::kFile:
      return absl::StrCat("read in the mapped file's own pages", why);
    case WeightPath::kArena:
      return absl::StrCat("read in memory shared with the CPU, filled from the file", why);
    case WeightPath::kCopy:
      break;
  }
  const bool unified = (info.flags & TRINE_DEVICE_UNIFIED_MEMORY) != 0;
  if (unified && refusal.empty()) return "copied: the device does not import memory";
  return absl::StrCat(unified ? "copied" : "copied to the device's own memory", why);
}

bool RunsOp(const Device& device, const OpGraph& graph, size_t op) {
  return Supports(device, graph.View(), static_cast<uint32_t>(op), LeastSupport(graph.numerics()));
}

bool RunsAll(const Device& device, const OpGraph& graph) {
  return CheckSupport(device, graph.View()).ok();
}

bool RunsReaders(const Device& device, const OpGraph& graph, TensorId tensor) {
  const std::vector<uint32_t> readers = graph.Readers(tensor);
  return std::all_of(readers.begin(), readers.end(),
                     [&](uint32_t op) { return RunsOp(device, graph, op); });
}

namespace {

// Returns the graph as the device is to run it. A graph that may be FAST becomes EXACT on a device
// that has all ops exactly: in a FAST graph the device could choose other kernels.
trine_graph ViewFor(const Device& device, const OpGraph& graph) {
  const trine_graph view = graph.View();
  trine_graph exact = view;
  exact.numerics = TRINE_NUMERICS_EXACT;
  if (view.numerics == TRINE_NUMERICS_EXACT || !CheckSupport(device, exact).ok()) return view;
  return device.QueryPlan(exact).ok() ? exact : view;
}

}  // namespace

absl::StatusOr<SegmentNeeds> Segment::Query(const Device& device, const OpGraph& graph) {
  const trine_graph view = ViewFor(device, graph);
  const auto info = device.QueryPlan(view);
  if (!info.ok()) {
    const absl::Status why = CheckSupport(device, view);
    return why.ok() ? info.status() : why;
  }
  SegmentNeeds needs;
  needs.scratch_bytes = info->scratch_bytes;
  for (const trine_slot& slot : graph.slots()) {
    if (slot.role == TRINE_ROLE_IO) needs.io_bytes += slot.bytes * slot.alternates;
  }
  return needs;
}

absl::StatusOr<std::unique_ptr<Segment>> Segment::Create(std::shared_ptr<Device> device,
                                                         OpGraph graph,
                                                         const std::vector<SlotMemory>& memory,
                                                         const Buffer* scratch) {
  auto needs = Query(*device, graph);
  if (!needs.ok()) return needs.status();
  // A device that is exact for some ops only must refuse a graph with others. Its plan_query may
  // have forgotten to.
  if (graph.numerics() == TRINE_NUMERICS_EXACT) {
    if (absl::Status s = CheckSupport(*device, graph.View()); !s.ok()) return s;
  }
  std::unique_ptr<Segment> segment(new Segment());
  segment->device_ = device;
  segment->graph_ = std::move(graph);
  segment->needs_ = *needs;
  if (absl::Status status = segment->AllocateIo(memory); !status.ok()) return status;
  segment->needs_.io_bytes = 0;
  for (const auto& [slot, buffer] : segment->io_) {
    segment->needs_.io_bytes += segment->graph_.slots()[slot].bytes;
  }

  trine_plan_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.binding_stride = sizeof(trine_binding);
  if (needs->scratch_bytes > 0 && scratch != nullptr) {
    desc.scratch = scratch->Span(0, needs->scratch_bytes);
  } else if (needs->scratch_bytes > 0) {
    auto own = Buffer::Allocate(device, needs->scratch_bytes, TRINE_MEMORY_STATE);
    if (!own.ok()) return own.status();
    segment->scratch_ = std::move(*own);
    desc.scratch = segment->scratch_.Span(0, needs->scratch_bytes);
  }
  std::vector<trine_binding> bindings;
  for (const SlotMemory& m : memory) bindings.push_back({m.slot, m.alternate, m.span});
  for (const auto& [slot, buffer] : segment->io_) {
    bindings.push_back({slot, 0, buffer.Span(0, segment->graph_.slots()[slot].bytes)});
  }
  desc.n_bindings = static_cast<uint32_t>(bindings.size());
  desc.bindings = bindings.data();
  const trine_graph view = ViewFor(*device, segment->graph_);
  segment->exact_ = view.numerics == TRINE_NUMERICS_EXACT;
  desc.graph = &view;
  auto plan = Plan::Create(device, desc);
  if (!plan.ok()) return plan.status();
  segment->plan_ = std::move(*plan);
  return segment;
}

absl::Status Segment::AllocateIo(const std::vector<SlotMemory>& memory) {
  const auto& slots = graph_.slots();
  for (SlotId s = 0; s < slots.size(); ++s) {
    const bool bound =
        std::any_of(memory.begin(), memory.end(), [&](const SlotMemory& m) { return m.slot == s; });
    if (slots[s].role != TRINE_ROLE_IO || bound) continue;
    auto buffer = Buffer::Allocate(device_, RoundUp(slots[s].bytes, 64), TRINE_MEMORY_IO);
    if (!buffer.ok()) return buffer.status();
    io_.emplace(s, std::move(*buffer));
  }
  return absl::OkStatus();
}

absl::Status Segment::Write(TensorId io, const void* data, uint64_t bytes) {
  const trine_tensor& t = graph_.tensor(io);
  const Buffer& buffer = io_.at(t.slot);
  if (void* host = buffer.host_ptr()) {
    std::memcpy(static_cast<std::byte*>(host) + t.offset, data, bytes);
    return absl::OkStatus();
  }
  return buffer.Write(t.offset, data, bytes);
}

absl::Status Segment::Read(TensorId io, uint64_t offset, void* data, uint64_t bytes) const {
  const trine_tensor& t = graph_.tensor(io);
  const Buffer& buffer = io_.at(t.slot);
  if (const void* host = buffer.host_ptr()) {
    std::memcpy(data, static_cast<const std::byte*>(host) + t.offset + offset, bytes);
    return absl::OkStatus();
  }
  return buffer.Read(t.offset + offset, data, bytes);
}

void* Segment::HostView(TensorId io) {
  const trine_tensor& t = graph_.tensor(io);
  void* host = io_.at(t.slot).host_ptr();
  return host == nullptr ? nullptr : static_cast<std::byte*>(host) + t.offset;
}

absl::Status Segment::Run(const std::vector<int64_t>& params, uint32_t alternate) {
  return RunPlan(params, alternate, {});
}

absl::Status Segment::Submit(const std::vector<int64_t>& params, const trine_point& signal) {
  trine_sync sync{};
  sync.n_signals = 1;
  sync.point_stride = sizeof(signal);
  sync.signals = &signal;
  return RunPlan(params, 0, sync);
}

absl::Status Segment::RunPlan(const std::vector<int64_t>& params, uint32_t alternate,
                              const trine_sync& sync) {
  trine_run_args args{};
  args.sync = sync;
  args.struct_size = sizeof(args);
  args.n_params = static_cast<uint32_t>(params.size());
  args.params = params.data();
  if (alternate != 0) {
    alternates_.clear();
    for (const trine_slot& slot : graph_.slots()) {
      alternates_.push_back(slot.alternates > 1 ? alternate : 0);
    }
    args.n_alternates = static_cast<uint32_t>(alternates_.size());
    args.alternates = alternates_.data();
  }
  const std::lock_guard lock(device_->run_mutex());
  return plan_.Run(args);
}

}  // namespace trine
