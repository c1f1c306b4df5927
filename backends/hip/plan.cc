// Plans on the device: captured for the parameters of a run, replayed as long as they stay the
// same.
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "backends/hip/backend.h"
#include "backends/hip/io_shadows.h"
#include "backends/hip/op_launches.h"
#include "backends/hip/recording.h"
#include "backends/hip/weight_windows.h"
#include "kernels/hip/ops/ops.h"

namespace trine::hip {
namespace {

using backends::RunKey;

std::byte* PlaceOfSpan(const trine_span& span) {
  if (span.buffer == nullptr || !span.buffer->InRange(span.offset, span.bytes)) return nullptr;
  return span.buffer->memory.data() + span.offset;
}

// Returns "" or why the device can't use a span. The span is in range. Kernels must be able to
// reach a span that is `written`.
std::string WhyNotSpan(const trine_device& device, const trine_span& span, bool written) {
  if (span.buffer == nullptr) return "";
  if (span.buffer->device != &device) return "is in a buffer of another device";
  if (span.buffer->read_only && written) return "is memory that can't be written";
  if (span.offset % kAlignment == 0) return "";
  return absl::StrCat("begins at ", span.offset, ", which is no multiple of ", kAlignment);
}

// Returns for each slot where its constants lie.
std::vector<ConstantPlace> ConstantPlaces(const sdk::Graph& graph, const trine_plan_desc& desc) {
  std::vector<ConstantPlace> places(graph.slots.size(), ConstantPlace::kDevice);
  for (uint32_t i = 0; i < desc.n_bindings; ++i) {
    const trine_binding b = sdk::At(desc.bindings, desc.binding_stride, i);
    if (b.span.buffer == nullptr || !b.span.buffer->memory.of_host()) continue;
    places[b.slot] = b.span.buffer->memory.kind() == MemoryKind::kPageable
                         ? ConstantPlace::kPageable
                         : ConstantPlace::kPinned;
  }
  return places;
}

}  // namespace
}  // namespace trine::hip

struct trine_plan {
  trine_device* device = nullptr;
  trine::sdk::Graph graph;
  trine::sdk::PlanPlaces<std::byte*> places;
  std::vector<trine::hip::ConstantPlace> constants;  // by slot
  trine::hip::WindowedGraph windowed;                // the graph that is run
  std::shared_ptr<trine::hip::WeightStages> stages;  // null: no weights are streamed
  std::vector<trine::hip::OpGroup> groups;           // groups of the windowed graph's ops
  trine::hip::LaunchScratch scratch;
  std::optional<trine::hip::IoShadows> shadows;
  std::byte* scratch_place = nullptr;  // after the TEMP slots

  std::mutex mutex;  // guards the recordings: the device's thread makes some
  trine::backends::KeptRecordings<trine::hip::Recording> recordings;
};

namespace trine::hip {
namespace {

auto RefusalOf(const trine_device& device) {
  return
      [&device](const sdk::Graph& graph, size_t op) { return WhyNotOp(device.shape, graph, op); };
}

// The scratch holds the TEMP slots, then what the launches need, then the shadows of IO slots.
uint64_t OwnScratchOffset(const sdk::Graph& graph) {
  return (sdk::LayOutScratch(graph, nullptr) + kAlignment - 1) / kAlignment * kAlignment;
}

// Copies small pieces with one kernel, which is added to `launches`. Adds other copies to `copies`.
void AddPieces(const std::vector<Piece>& pieces, std::vector<Launch>* launches,
               std::vector<Work::Copy>* copies) {
  std::vector<Piece> small;
  for (const Piece& piece : pieces) {
    if (piece.bytes <= kMostPieceBytes && small.size() < kMostPieces) {
      small.push_back(piece);
    } else {
      copies->push_back({piece.to, piece.from, piece.bytes});
    }
  }
  if (small.empty()) return;
  launches->push_back(CopyPiecesLaunch(small));
  launches->back().label = "copy";
}

// Returns the copies that bring the weights of a group into the stage of `turn`, and sets the
// `places` of the tensors to the stage. `bound_to` returns the address of a slot's bytes.
template <class BoundTo>
std::vector<WeightStages::Copy> StageInputs(const trine_plan& plan, const OpGroup& group,
                                            size_t turn, BoundTo bound_to,
                                            std::vector<std::byte*>* places) {
  std::vector<WeightStages::Copy> copies;
  std::byte* to = plan.stages->At(turn);
  for (const uint32_t tensor : plan.windowed.StagedIn(group)) {
    const uint32_t slot = plan.windowed.graph.tensors[tensor].slot;
    const bool pinned = plan.constants[slot] == ConstantPlace::kPinned;
    const StagedTensor& staged = *plan.windowed.staged[tensor];
    (*places)[tensor] = to;
    std::byte* at = to;
    for (const StagedTensor::Piece& piece : staged.pieces) {
      copies.push_back({at, bound_to(slot, piece.offset), piece.bytes, pinned});
      at += piece.bytes;
    }
    to += staged.RoomBytes();
  }
  return copies;
}

Work WorkOf(const trine_plan& plan, const RunKey& key) {
  const sdk::Graph& graph = plan.windowed.graph;
  std::byte* shadows = plan.scratch_place + plan.scratch.Bytes();
  // The address at which kernels find a slot's bytes, and the address that the slot is bound to.
  const auto shadow_of = [&](uint32_t slot, uint64_t offset) {
    return shadows + *plan.shadows->OffsetOf(slot) + offset;
  };
  const auto bound_to = [&](uint32_t slot, uint64_t offset) {
    trine_tensor t{};
    t.slot = slot;
    t.offset = offset;
    return plan.places.PlaceOf(plan.graph, t, key.Alternates());
  };
  std::vector<std::byte*> places;
  for (const trine_tensor& t : graph.tensors) {
    places.push_back(plan.shadows->OffsetOf(t.slot).has_value() ? shadow_of(t.slot, t.offset)
                                                                : bound_to(t.slot, t.offset));
  }
  Work work;
  work.early = plan.device->backend->options.early;
  const IoShadows::Transfers transfers = plan.shadows->At(key.params);
  std::vector<Piece> in, out;
  for (const sdk::ByteRange& r : transfers.in) {
    in.push_back({shadow_of(r.slot, r.begin), bound_to(r.slot, r.begin), r.end - r.begin});
  }
  for (const sdk::ByteRange& r : transfers.out) {
    out.push_back({bound_to(r.slot, r.begin), shadow_of(r.slot, r.begin), r.end - r.begin});
  }
  AddPieces(in, &work.launches, &work.in);
  work.inputs = work.launches.size();
  const OpLaunches maker(plan.device->shape, graph, plan.scratch, plan.scratch_place, places,
                         key.params.data());
  // Products are not joined if their weights come one after the other.
  const bool join = plan.device->backend->options.fuse && plan.stages == nullptr;
  for (const GroupRun& run : JoinGroups(graph, plan.groups, key.params.data(), join)) {
    Work::Feed feed;
    if (plan.stages != nullptr) {
      feed.copies = StageInputs(plan, plan.groups[run.first], work.feeds.size(), bound_to, &places);
    }
    feed.first = work.launches.size();
    maker.Add(plan.groups, run, &work.launches);
    feed.end = work.launches.size();
    if (!feed.copies.empty() && feed.first != feed.end) work.feeds.push_back(std::move(feed));
  }
  work.stages = plan.stages;
  AddPieces(out, &work.launches, &work.out);
  return work;
}

// Makes the graph that is run, with the weights where the bindings have them.
absl::Status PrepareRuns(trine_plan* plan) {
  trine_device* device = plan->device;
  plan->windowed = WindowWeights(plan->graph, plan->constants, device->WindowBytes());
  plan->groups = backends::GroupOps(plan->windowed.graph, device->backend->options.fuse);
  plan->scratch = ScratchOf(device->shape, plan->windowed.graph);
  // PlanQuery promised the scratch for the graph as given.
  if (plan->scratch.Bytes() > ScratchOf(device->shape, plan->graph).Bytes()) {
    return absl::InternalError("windows of weights need more scratch than the whole");
  }
  if (!plan->windowed.any()) return absl::OkStatus();
  auto stages = device->StagesFor(plan->windowed.StageBytes(plan->groups));
  if (!stages.ok()) return stages.status();
  plan->stages = *std::move(stages);
  return absl::OkStatus();
}

absl::StatusOr<Recording*> RecordingFor(trine_plan* plan, const RunKey& key) {
  const std::lock_guard<std::mutex> lock(plan->mutex);
  if (Recording* kept = plan->recordings.Find(key)) return kept;
  Work work = WorkOf(*plan, key);
  // If there is no room, reuses the least recently used recording: its graph gets the new launches.
  if (auto reused = plan->recordings.MakeRoom()) {
    if (absl::Status status = reused->Replace(std::move(work)); !status.ok()) return status;
    return plan->recordings.Add(key, std::move(reused));
  }
  auto recording = Recording::Create(plan->device->gpu.get(), std::move(work),
                                     plan->device->backend->options.graphs);
  if (!recording.ok()) return recording.status();
  return plan->recordings.Add(key, *std::move(recording));
}

// If `timed` is set, reports to the host how long each part takes.
absl::Status Run(trine_plan* plan, const RunKey& key, bool timed) {
  if (absl::Status status = plan->device->gpu->Health(); !status.ok()) return status;
  const auto recording = RecordingFor(plan, key);
  if (!recording.ok()) return recording.status();
  if (!timed) return (*recording)->Run();
  const trine_host& host = *plan->device->backend->host;
  return (*recording)->RunTimed([&](const char* label, uint64_t ns) {
    host.op_done(host.self, label, ns);
  });
}

absl::Status Start(trine_plan* plan, const RunKey& key) {
  if (absl::Status status = plan->device->gpu->Health(); !status.ok()) return status;
  const auto recording = RecordingFor(plan, key);
  return recording.ok() ? (*recording)->Start() : recording.status();
}

}  // namespace

trine_status OpQuery(trine_device* device, const trine_graph* graph, uint32_t op, const int64_t*,
                     trine_op_support* out, trine_error* err) {
  const trine_status status = device->Health(err);
  if (status != TRINE_OK) return status;
  return sdk::AnswerOpQuery(graph, op, device->Support(), RefusalOf(*device), out, err);
}

trine_status PlanQuery(trine_device* device, const trine_graph* given, trine_plan_info* out,
                       trine_error* err) {
  return sdk::Guard(err, [&]() -> trine_status {
    trine_status status = device->Health(err);
    if (status != TRINE_OK) return status;
    sdk::Graph graph;
    status = sdk::AcceptGraph(given, device->Support(), RefusalOf(*device), &graph, err);
    if (status != TRINE_OK) return status;
    trine_plan_info info{};
    info.scratch_alignment = kAlignment;
    const uint64_t own = ScratchOf(device->shape, graph).Bytes() + IoShadows(graph).bytes();
    info.scratch_bytes =
        own == 0 ? sdk::LayOutScratch(graph, nullptr) : OwnScratchOffset(graph) + own;
    sdk::WriteOut(out, info);
    return TRINE_OK;
  });
}

trine_status PlanCreate(trine_device* device, const trine_plan_desc* given, trine_plan** out,
                        trine_error* err) {
  return sdk::Guard(err, [&]() -> trine_status {
    trine_status status = device->Health(err);
    if (status != TRINE_OK) return status;
    const trine_plan_desc desc = sdk::ReadIn(given);
    auto plan = std::make_unique<trine_plan>();
    plan->device = device;
    status = sdk::AcceptGraph(desc.graph, device->Support(), RefusalOf(*device), &plan->graph, err);
    if (status != TRINE_OK) return status;
    status = plan->places.Bind(plan->graph, desc, PlaceOfSpan, err);
    const auto why_not = [&](const trine_span& span, bool written) {
      return WhyNotSpan(*device, span, written);
    };
    if (status == TRINE_OK) status = backends::CheckSpans(plan->graph, desc, why_not, err);
    if (status != TRINE_OK) return status;
    plan->constants = ConstantPlaces(plan->graph, desc);
    if (absl::Status made = PrepareRuns(plan.get()); !made.ok()) return Fail(err, made);
    plan->shadows.emplace(plan->graph);
    const uint64_t own = plan->scratch.Bytes() + plan->shadows->bytes();
    if (own != 0) {
      std::byte* scratch = PlaceOfSpan(desc.scratch);
      const uint64_t offset = OwnScratchOffset(plan->graph);
      if (scratch == nullptr || desc.scratch.bytes < offset + own) {
        return Fail(err, TRINE_INVALID_ARGUMENT, "the scratch is missing or too small");
      }
      plan->scratch_place = scratch + offset;
    }
    *out = plan.release();
    return TRINE_OK;
  });
}

trine_status PlanRun(trine_plan* plan, const trine_run_args* given, trine_error* err) {
  const trine_run_args args = sdk::ReadIn(given);
  return sdk::Guard(err, [&]() -> trine_status {
    const trine_status status = sdk::CheckRun(plan->graph, args, err);
    if (status != TRINE_OK) return status;
    const RunKey key(plan->graph, args);
    // Times are reported inside this call, by this thread, so a timed run is waited for.
    if (sdk::WantsOpTimes(*plan->device->backend->host)) {
      return sdk::SubmitSynchronously(args.sync, backends::TimelineOf, err, [&](trine_error* own) {
        return Answer(own, Run(plan, key, /*timed=*/true));
      });
    }
    return Submit(
        plan->device, args.sync, [&] { return Run(plan, key, /*timed=*/false); },
        [plan, key] { return Start(plan, key); }, err);
  });
}

void PlanDestroy(trine_plan* plan) { delete plan; }

}  // namespace trine::hip
