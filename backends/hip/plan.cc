// Plans on the device: captured for the parameters of a run, replayed as long as they stay the
// same.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/hip/backend.h"
#include "kernels/hip/ops/ops.h"

namespace trine::hip {
namespace {

using backends::RunKey;

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

// Returns piece `first`, which lies at `from`, and the pieces after it that are as long and as far
// apart.
HostPieces PiecesFrom(const std::vector<StagedTensor::Piece>& pieces, size_t first,
                      const std::byte* from) {
  HostPieces run{from, pieces[first].bytes};
  for (size_t i = first + 1; i < pieces.size(); ++i) {
    const uint64_t pitch = pieces[i].offset - pieces[i - 1].offset;
    const bool begins_before = pieces[i].offset < pieces[i - 1].offset + pieces[i - 1].bytes;
    if (pieces[i].bytes != run.bytes || begins_before || (run.count > 1 && pitch != run.pitch)) {
      break;
    }
    run.pitch = pitch;
    ++run.count;
  }
  return run;
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
    for (size_t i = 0; i < staged.pieces.size();) {
      const HostPieces from = PiecesFrom(staged.pieces, i, bound_to(slot, staged.pieces[i].offset));
      copies.push_back({at, from, pinned});
      at += from.AllBytes();
      i += from.count;
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

// Returns a copy within the host's memory by all threads of the host's team: one thread copies more
// slowly than a bus takes bytes. REQUIRES: it is used within plan_run, on the caller's thread.
HostCopy TeamCopy(const trine_host& host) {
  struct Job {
    std::byte* to;
    const HostPieces& from;
  };
  constexpr uint64_t kWorthATeam = 256 << 10, kPiece = 4096;
  return [&host](void* to, const HostPieces& from) {
    Job job{static_cast<std::byte*>(to), from};
    const trine_worker_fn part = [](void* arg, uint32_t worker, uint32_t workers) {
      const Job& j = *static_cast<Job*>(arg);
      const uint64_t bytes = j.from.AllBytes();
      const uint64_t pieces = (bytes + kPiece - 1) / kPiece;
      CopyPieces(j.to, j.from, pieces * worker / workers * kPiece,
                 std::min(pieces * (worker + 1) / workers * kPiece, bytes));
    };
    const bool alone = from.AllBytes() < kWorthATeam || host.worker_count < 2;
    if (!alone && host.parallel_run(host.self, part, &job) == TRINE_OK) return;
    CopyPieces(job.to, from, 0, from.AllBytes());
  };
}

// If `timed` is set, reports to the host how long each part takes.
absl::Status RunNow(trine_plan* plan, const RunKey& key, bool timed) {
  if (absl::Status status = plan->device->gpu->Health(); !status.ok()) return status;
  const auto recording = RecordingFor(plan, key);
  if (!recording.ok()) return recording.status();
  const trine_host& host = *plan->device->backend->host;
  const HostCopy copy = plan->stages == nullptr ? nullptr : TeamCopy(host);
  if (!timed) return (*recording)->Run(copy);
  return (*recording)->RunTimed(copy, [&](const char* label, uint64_t ns) {
    host.op_done(host.self, label, ns);
  });
}

absl::Status Start(trine_plan* plan, const RunKey& key) {
  if (absl::Status status = plan->device->gpu->Health(); !status.ok()) return status;
  const auto recording = RecordingFor(plan, key);
  return recording.ok() ? (*recording)->Start() : recording.status();
}

}  // namespace
}  // namespace trine::hip

uint64_t trine_device::OwnScratch(const trine::sdk::Graph& graph) const {
  return trine::hip::ScratchOf(shape, graph).Bytes() + trine::hip::IoShadows(graph).bytes();
}

absl::StatusOr<uint64_t> trine_plan::Prepare(const trine_plan_desc& desc) {
  constants = trine::hip::ConstantPlaces(graph, desc);
  windowed = trine::hip::WindowWeights(graph, constants, device->WindowBytes());
  groups = trine::backends::GroupOps(windowed.graph, device->backend->options.fuse);
  scratch = trine::hip::ScratchOf(device->shape, windowed.graph);
  // plan_query promised the scratch for the graph as given.
  if (scratch.Bytes() > trine::hip::ScratchOf(device->shape, graph).Bytes()) {
    return absl::InternalError("windows of weights need more scratch than the whole");
  }
  if (windowed.any()) {
    auto shared = device->StagesFor(windowed.StageBytes(groups));
    if (!shared.ok()) return shared.status();
    stages = *std::move(shared);
  }
  shadows.emplace(graph);
  return scratch.Bytes() + shadows->bytes();
}

trine_status trine_plan::Run(const trine_run_args& args, trine_error* err) {
  const trine::backends::RunKey key(graph, args);
  // Times are reported inside this call, by this thread, so a timed run is waited for.
  if (trine::sdk::WantsOpTimes(*device->backend->host)) {
    return trine::sdk::SubmitSynchronously(
        args.sync, trine::backends::TimelineOf, err, [&](trine_error* own) {
          return trine::backends::Answer(own, trine::hip::RunNow(this, key, /*timed=*/true));
        });
  }
  return trine::hip::Submit(
      device, args.sync, [&] { return trine::hip::RunNow(this, key, /*timed=*/false); },
      [this, key] { return trine::hip::Start(this, key); }, err,
      stages == nullptr ? trine::hip::Starter::kCaller : trine::hip::Starter::kDevice);
}
