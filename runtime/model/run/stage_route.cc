#include "runtime/model/run/stage_route.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/model/weights/canonical_check.h"

namespace trine {

StageRoute::StageRoute(std::string device, const SegmentIo& io, std::unique_ptr<Segment> segment,
                       BoundEnds bound)
    : device_(std::move(device)), io_(io), bound_(bound), segment_(std::move(segment)) {}

StageRoute::StageRoute(std::unique_ptr<SplitStage> split)
    : device_(split->devices()[0].name), split_(std::move(split)) {}

absl::Status StageRoute::Write(TensorId SegmentIo::*which, const void* data, uint64_t bytes,
                               uint64_t* moved) {
  if (segment_ != nullptr && io_.*which == TRINE_NONE) return absl::OkStatus();
  if (which == &SegmentIo::hidden_in && bound_.in) {
    *moved += Crossing(bytes);
    return absl::OkStatus();
  }
  *moved += bytes;
  return segment_ != nullptr ? segment_->Write(io_.*which, data, bytes)
                             : split_->Write(which, data, bytes);
}

absl::Status StageRoute::Run(const std::vector<int64_t>& params, size_t slot,
                             PassChoices* choices) {
  if (segment_ == nullptr) return split_->Run(params, choices);
  return segment_->Run(params, bound_.in || bound_.out ? static_cast<uint32_t>(slot) : 0);
}

uint64_t StageRoute::Crossing(uint64_t bytes) const {
  const bool unified = (segment_->device().info().flags & TRINE_DEVICE_UNIFIED_MEMORY) != 0;
  return unified ? 0 : bytes;
}

absl::StatusOr<std::span<const float>> StageRoute::Read(const std::vector<int64_t>& params,
                                                        size_t values, bool keep, float* memory,
                                                        uint64_t* moved) {
  if (segment_ != nullptr) return ReadSegment(values, keep, memory, moved);
  auto rows = split_->ReadOutput(params, keep, memory);
  if (rows.ok()) *moved += rows->size() * sizeof(float);
  return rows;
}

absl::StatusOr<std::span<const float>> StageRoute::ReadSegment(size_t values, bool keep,
                                                               float* memory, uint64_t* moved) {
  const TensorId io = io_.hidden_out != TRINE_NONE ? io_.hidden_out
                      : io_.logits != TRINE_NONE   ? io_.logits
                                                   : io_.embeddings;
  std::span<const float> rows(memory, values);
  if (io == io_.hidden_out && bound_.out) {
    *moved += Crossing(values * sizeof(float));
  } else if (const void* seen = segment_->HostView(io); seen != nullptr && !keep) {
    rows = {static_cast<const float*>(seen), values};
  } else {
    *moved += values * sizeof(float);
    const absl::Status s = segment_->Read(io, 0, memory, values * sizeof(float));
    if (!s.ok()) return s;
  }
  if (absl::Status s = CheckCanonical(rows, device_); !s.ok()) return s;
  return rows;
}

absl::Status StageRoute::ReadHidden(const std::vector<int64_t>& params, std::span<float> memory,
                                    uint64_t* moved) {
  *moved += memory.size_bytes();
  if (segment_ == nullptr) return split_->ReadHidden(params, memory.data()).status();
  if (absl::Status s = segment_->Read(io_.embeddings, 0, memory.data(), memory.size_bytes());
      !s.ok()) {
    return s;
  }
  return CheckCanonical(memory, device_);
}

void StageRoute::CountExperts(std::vector<RoutedLayer> routed) {
  if (split_ != nullptr) return split_->CountExperts();
  routed_ = std::move(routed);
}

absl::Status StageRoute::AddChoices(int64_t tokens, PassChoices* choices) {
  for (const RoutedLayer& layer : routed_) {
    const auto count = static_cast<size_t>(tokens * layer.used);
    const auto* ids = static_cast<const int32_t*>(segment_->HostView(layer.ids));
    if (ids == nullptr) {
      ids_.resize(count);
      const absl::Status s = segment_->Read(layer.ids, 0, ids_.data(), count * sizeof(int32_t));
      if (!s.ok()) return s;
      ids = ids_.data();
    }
    if (absl::Status s = CheckIds({ids, count}, layer.experts, device_); !s.ok()) return s;
    choices->Add(layer.layer, {ids, count});
  }
  return absl::OkStatus();
}

void StageRoute::TakeTimes(uint64_t run_ns, DeviceTimes* times) {
  if (split_ != nullptr) return split_->TakeTimes(times);
  times->Add(device_.c_str(), run_ns);
}

std::vector<std::string> StageRoute::Devices() const {
  if (split_ == nullptr) return {device_};
  std::vector<std::string> names;
  for (const NamedDevice& d : split_->devices()) names.push_back(d.name);
  return names;
}

BusyDevice StageRoute::Busiest() const {
  BusyDevice busy = split_ == nullptr ? BusyDevice() : split_->Busiest();
  if (busy.name.empty()) busy.name = device_;
  return busy;
}

absl::StatusOr<std::unique_ptr<StageRoute>> RouteLoader::Load(const SegmentPlace& home,
                                                              const RoutePlan& plan, size_t route,
                                                              SegmentGraph whole) {
  std::vector<RoutedLayer> routed = whole.routed;
  auto loaded = plan.kind == RouteKind::kTwin      ? LoadTwin(plan, std::move(whole))
                : plan.kind == RouteKind::kFetched ? LoadFetched(home, plan, std::move(whole))
                                                   : LoadProducts(home, plan, route, whole);
  if (loaded.ok() && count_experts_) (*loaded)->CountExperts(std::move(routed));
  return loaded;
}

absl::StatusOr<std::unique_ptr<StageRoute>> RouteLoader::LoadTwin(const RoutePlan& plan,
                                                                  SegmentGraph whole) {
  if (!caches_.shared()) return absl::UnimplementedError("they can't share the KV cache");
  whole.graph.Finish();
  auto memory = Bind(plan.helper.device, Uses::kShared, &whole);
  if (!memory.ok()) return memory.status();
  auto segment = Segment::Create(plan.helper.device, std::move(whole.graph), *memory);
  if (!segment.ok()) return segment.status();
  const uint64_t own = (*segment)->needs().scratch_bytes + (*segment)->needs().io_bytes;
  scratch_bytes_ += own;
  helper_bytes_ += own;
  return std::make_unique<StageRoute>(plan.helper.name, whole.io, *std::move(segment));
}

absl::StatusOr<std::unique_ptr<StageRoute>> RouteLoader::LoadFetched(const SegmentPlace& home,
                                                                     const RoutePlan& plan,
                                                                     SegmentGraph whole) {
  whole.graph.Finish();
  FindLayouts(*home.device, &whole);
  const std::vector<const gguf::TensorInfo*> fetched(plan.fetched.begin(), plan.fetched.end());
  if (absl::Status s = store_.ImportStreamed(home.device, fetched); !s.ok()) return s;
  auto memory = Bind(home.device, Uses::kOwn, &whole, plan.fetched);
  if (!memory.ok()) return memory.status();
  auto segment = Segment::Create(home.device, std::move(whole.graph), *memory);
  if (!segment.ok()) return segment.status();
  const uint64_t own = (*segment)->needs().scratch_bytes + (*segment)->needs().io_bytes;
  scratch_bytes_ += own;
  helper_bytes_ += own + kStreamBytes;
  return std::make_unique<StageRoute>(home.device_name, whole.io, *std::move(segment));
}

absl::StatusOr<std::unique_ptr<StageRoute>> RouteLoader::LoadProducts(const SegmentPlace& home,
                                                                      const RoutePlan& plan,
                                                                      size_t route,
                                                                      const SegmentGraph& whole) {
  constexpr size_t kHome = 0, kHelper = 1;
  const std::vector<bool>& away = plan.helper_ops[route];
  const NamedDevice& helper = plan.helper;
  const bool streams = plan.kind == RouteKind::kStreamed;
  std::vector<OpOwners> owners(whole.graph.n_ops());
  for (size_t op = 0; op < owners.size(); ++op) {
    if (away[op]) owners[op] = {{kHelper, 0, 0}};
  }
  auto split = std::make_unique<SplitStage>(
      std::vector<NamedDevice>{{home.device, home.device_name}, helper},
      SplitGraph(whole, owners, {true, false}));
  std::vector<const gguf::TensorInfo*> streamed;
  std::vector<uint64_t> scratch(2, 0);
  for (GraphPiece& piece : split->pieces()) {
    const bool there = piece.device == kHelper;
    const Device& device = there ? *helper.device : *home.device;
    if (!there) FindLayouts(device, &piece.graph);
    for (const WeightUse& use : piece.graph.weights) {
      if (streams && there && !use.as_f32) streamed.push_back(use.info);
    }
    const auto needs = Segment::Query(device, piece.graph.graph);
    if (!needs.ok()) return needs.status();
    scratch[piece.device] = std::max(scratch[piece.device], needs->scratch_bytes);
  }
  if (absl::Status s = store_.ImportStreamed(helper.device, streamed); !s.ok()) return s;
  const std::optional<size_t> streaming = streams ? std::optional<size_t>(kHelper) : std::nullopt;
  if (absl::Status s = split->Allocate(scratch, streaming); !s.ok()) return s;
  for (const size_t d : {kHome, kHelper}) scratch_bytes_ += scratch[d] + split->IoBytes(d);
  helper_bytes_ += scratch[kHelper] + split->IoBytes(kHelper);
  if (streams && route == 0) helper_bytes_ += kStreamBytes;
  for (GraphPiece& piece : split->pieces()) {
    const bool there = piece.device == kHelper;
    auto memory = Bind(there ? helper.device : home.device,
                       there && streams ? Uses::kStreamed : Uses::kShared, &piece.graph);
    if (!memory.ok()) return memory.status();
    const absl::Status s = split->AddPiece(std::move(piece.graph.graph), *std::move(memory));
    if (!s.ok()) return s;
  }
  return std::make_unique<StageRoute>(std::move(split));
}

void RouteLoader::FindLayouts(const Device& device, SegmentGraph* segment) const {
  for (WeightUse& use : segment->weights) {
    OpGraph& graph = segment->graph;
    for (const PackedWeight& weight : packed_.items()) {
      if (weight.device.get() != &device || weight.tensor != use.info || use.packed) continue;
      graph.SetLayout(use.tensor, weight.layout.id(), weight.layout.packed_bytes());
      if (RunsReaders(device, graph, use.tensor)) {
        use.packed = weight.layout;
      } else {
        graph.SetLayout(use.tensor, TRINE_LAYOUT_PLAIN, graph.Bytes(use.tensor));
      }
    }
  }
}

absl::StatusOr<std::vector<SlotMemory>> RouteLoader::BindAtHome(const std::shared_ptr<Device>& home,
                                                                SegmentGraph* graph) {
  FindLayouts(*home, graph);
  return Bind(home, Uses::kOwn, graph);
}

absl::StatusOr<std::vector<SlotMemory>> RouteLoader::Bind(
    const std::shared_ptr<Device>& device, Uses uses, SegmentGraph* graph,
    const std::set<const gguf::TensorInfo*>& fetched) {
  std::vector<SlotMemory> memory;
  for (const WeightUse& use : graph->weights) {
    const bool streams = uses == Uses::kStreamed || fetched.count(use.info) != 0;
    const SlotId slot = graph->graph.SlotOf(use.tensor);
    if (use.packed) {
      memory.push_back({slot, packed_.Find(device.get(), use.info, use.packed->id())->span});
      continue;
    }
    const bool canon = changed_.count(use.info) != 0;
    const bool in_place = WeightStore::InPlace(*use.info, use.as_f32, canon);
    // A device may have a copy of a vector.
    const bool matrix = use.info->rank > 1;
    if (uses == Uses::kShared && in_place && matrix && !store_.Sees(*device, *use.info)) {
      return absl::UnimplementedError(
          absl::StrCat(std::string(use.info->name), " would be there twice"));
    }
    const auto where = streams && !use.as_f32 ? store_.PlaceStreamed(*device, *use.info)
                                              : store_.Place(device, *use.info, use.as_f32, canon);
    if (!where.ok()) return where.status();
    graph->graph.SetOffset(use.tensor, where->tensor_offset);
    memory.push_back({slot, where->span});
  }
  for (const KvUse& use : graph->caches) {
    const auto span = caches_.Of(device, use.number, graph->graph.Bytes(use.tensor));
    if (!span.ok()) return span.status();
    memory.push_back({graph->graph.SlotOf(use.tensor), *span});
  }
  return memory;
}

}  // namespace trine
