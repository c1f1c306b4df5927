#include "runtime/model/detour_loader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine {
namespace {

// What a plugin that streams weights is expected to take for it (docs/plugin-abi.md, "Memory").
constexpr uint64_t kStages = uint64_t{32} << 20;

bool IsTaken(const Device& device, const SegmentGraph& segment, TensorId weight) {
  const trine_graph view = segment.graph.View(TRINE_NUMERICS_EXACT);
  const std::vector<uint32_t> readers = segment.graph.Readers(weight);
  return std::all_of(readers.begin(), readers.end(), [&](uint32_t op) {
    const auto support = device.QueryOp(view, op);
    return support.ok() && support->support >= TRINE_SUPPORT_EXACT;
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<StageWay>> DetourLoader::Load(const SegmentPlace& home,
                                                             const DetourPlan& plan, size_t route,
                                                             SegmentGraph whole) {
  if (plan.kind == DetourKind::kTwin) return LoadTwin(plan, std::move(whole));
  return LoadStreamed(home, plan.routes[route], plan.helper, whole);
}

absl::StatusOr<std::unique_ptr<StageWay>> DetourLoader::LoadTwin(const DetourPlan& plan,
                                                                 SegmentGraph whole) {
  if (!caches_.shared()) return absl::UnimplementedError("they can't share the KV cache");
  whole.graph.Finish();
  auto memory = Bind(plan.helper.device, Uses::kShared, &whole);
  if (!memory.ok()) return memory.status();
  auto segment =
      Segment::Create(plan.helper.device, std::move(whole.graph), TRINE_NUMERICS_EXACT, *memory);
  if (!segment.ok()) return segment.status();
  const uint64_t own = (*segment)->needs().scratch_bytes + (*segment)->needs().io_bytes;
  scratch_bytes_ += own;
  helper_bytes_ += own;
  return std::make_unique<StageWay>(plan.helper.name, whole.io, *std::move(segment));
}

absl::StatusOr<std::unique_ptr<StageWay>> DetourLoader::LoadStreamed(const SegmentPlace& home,
                                                                     const std::vector<bool>& away,
                                                                     const NamedDevice& helper,
                                                                     const SegmentGraph& whole) {
  constexpr size_t kHome = 0, kHelper = 1;
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
      if (there && !use.as_f32) streamed.push_back(use.info);
    }
    const auto needs = Segment::Query(device, piece.graph.graph, TRINE_NUMERICS_EXACT);
    if (!needs.ok()) return needs.status();
    scratch[piece.device] = std::max(scratch[piece.device], needs->scratch_bytes);
  }
  if (absl::Status s = store_.ImportStreamed(helper.device, streamed); !s.ok()) return s;
  if (absl::Status s = split->Allocate(scratch); !s.ok()) return s;
  for (const size_t d : {kHome, kHelper}) scratch_bytes_ += scratch[d] + split->IoBytes(d);
  helper_bytes_ += scratch[kHelper] + split->IoBytes(kHelper) + (helper_bytes_ == 0 ? kStages : 0);
  for (GraphPiece& piece : split->pieces()) {
    const bool there = piece.device == kHelper;
    auto memory = Bind(there ? helper.device : home.device, there ? Uses::kStreamed : Uses::kShared,
                       &piece.graph);
    if (!memory.ok()) return memory.status();
    const absl::Status s = split->AddPiece(std::move(piece.graph.graph), *std::move(memory));
    if (!s.ok()) return s;
  }
  return std::make_unique<StageWay>(std::move(split));
}

void DetourLoader::FindLayouts(const Device& device, SegmentGraph* segment) const {
  for (WeightUse& use : segment->weights) {
    OpGraph& graph = segment->graph;
    for (const PackedWeight& weight : packed_.items()) {
      if (weight.device.get() != &device || weight.tensor != use.info || use.packed) continue;
      graph.SetLayout(use.tensor, weight.layout.id(), weight.layout.packed_bytes());
      if (IsTaken(device, *segment, use.tensor)) {
        use.packed = weight.layout;
      } else {
        graph.SetLayout(use.tensor, TRINE_LAYOUT_PLAIN, graph.Bytes(use.tensor));
      }
    }
  }
}

absl::StatusOr<std::vector<SlotMemory>> DetourLoader::BindAtHome(
    const std::shared_ptr<Device>& home, SegmentGraph* graph) {
  FindLayouts(*home, graph);
  return Bind(home, Uses::kOwn, graph);
}

absl::StatusOr<std::vector<SlotMemory>> DetourLoader::Bind(const std::shared_ptr<Device>& device,
                                                           Uses uses, SegmentGraph* graph) {
  const bool streams = uses == Uses::kStreamed;
  std::vector<SlotMemory> memory;
  for (const WeightUse& use : graph->weights) {
    const SlotId slot = graph->graph.SlotOf(use.tensor);
    if (use.packed) {
      memory.push_back({slot, packed_.Find(device.get(), use.info, use.packed->id())->span});
      continue;
    }
    const bool canon = changed_.count(use.info) != 0;
    const bool in_place = WeightStore::InPlace(*use.info, use.as_f32, canon);
    // Of vectors a device may have a copy.
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
