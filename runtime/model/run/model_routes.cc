// Model: plans and loads the helped routes of its stages.
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugins/handles.h"
#include "runtime/model/arch/read_model.h"
#include "runtime/model/run/model.h"
#include "runtime/model/run/stage_route.h"

namespace trine {

absl::Status Model::PlanRoutes(const DispatchOptions& options, const TensorPlaces& tensors,
                               const std::vector<SegmentGraph>& graphs,
                               const OutOfRange& out_of_range) {
  dispatch_log_ = options.log;
  limits_of_helpers_ = options.limits;
  asked_tokens_ = options.rule.from_tokens > 0;
  const auto can_stream = [&](const gguf::TensorInfo& tensor) {
    return out_of_range.count(&tensor) == 0 && (file_->mapped() || !packed_.Holds(&tensor));
  };
  for (size_t i = 0; !options.helpers.empty() && i < stages_.size(); ++i) {
    if (stages_[i].home == nullptr) continue;  // it is whole: see below
    const LayerSpan& span = places_[i].span;
    auto whole = BuildSegmentGraph(*file_, config_, limits_, span, {.finish = false});
    if (!whole.ok()) return whole.status();
    const SegmentOwners owners = FindOwners(places_[i], *whole, tensors);
    stages_[i].plan = PlanFetch(places_[i], *whole, owners, limits_, options, can_stream);
  }
  for (size_t i = 0; !options.helpers.empty() && i < graphs.size(); ++i) {
    Stage& stage = stages_[load_stages_[i]];
    if (stage.home != nullptr) continue;  // cut into pieces already
    auto whole = BuildSegmentGraph(*file_, config_, limits_, loads_[i].span, {.finish = false});
    if (!whole.ok()) return whole.status();
    HomeWeights weights;
    weights.file_mapped = file_->mapped();
    for (const WeightUse& use : graphs[i].weights) {
      weights.packed = weights.packed || use.packed.has_value();
      if (use.packed) weights.bytes += use.info->bytes;
    }
    stage.plan = PlanRoute(loads_[i], *whole, limits_, options, weights, can_stream);
    if (!stage.plan || stage.plan->kind != RouteKind::kTwin) continue;
    std::map<size_t, uint64_t> sizes;
    for (const KvUse& use : graphs[i].caches) sizes[use.number] = graphs[i].graph.Bytes(use.tensor);
    const absl::Status s = stage.caches.Share(loads_[i].device, stage.plan->helper.device, sizes);
    if (s.ok()) continue;
    if (absl::IsUnavailable(s)) return s;
    if (dispatch_log_) {
      dispatch_log_(absl::StrCat("dispatch: ", loads_[i].device_name, ", not with ",
                                 stage.plan->helper.name, ": ", s.message()));
    }
    stage.plan.reset();
  }
  return absl::OkStatus();
}

absl::Status Model::LoadRoutes(const HostServices& host, const OutOfRange& out_of_range) {
  for (size_t i = 0; i < stages_.size(); ++i) {
    Stage& stage = stages_[i];
    if (!stage.plan) continue;
    const absl::Status s = LoadRoute(&stage, i, out_of_range);
    if (s.ok()) continue;
    if (!FaultyDevice(s).empty() && !absl::IsResourceExhausted(s)) return s;
    const std::string without = stage.plan->kind == RouteKind::kFetched
                                    ? std::string("fetched weights")
                                    : absl::StrCat("the help of ", stage.plan->helper.name);
    host.Say(TRINE_LOG_WARNING,
             absl::StrCat(places_[i].device_name, " goes without ", without, ": ", s.message()));
    stage.helped.clear();
    stage.plan.reset();
  }
  return absl::OkStatus();
}

absl::Status Model::LoadRoute(Stage* stage, size_t index, const OutOfRange& out_of_range) {
  // The factor beyond a class's border up to which passes keep their route.
  constexpr double kBand = 1.25;
  RouteLoader loader(packed_, out_of_range, store_.get(), &stage->caches, limits_.count_experts);
  const RoutePlan& plan = *stage->plan;
  for (size_t route = 0; route < plan.helper_ops.size(); ++route) {
    auto whole =
        BuildSegmentGraph(*file_, config_, limits_, places_[index].span, {.finish = false});
    if (!whole.ok()) return whole.status();
    auto loaded = loader.Load(places_[index], plan, route, *std::move(whole));
    if (!loaded.ok()) return loaded.status();
    stage->helped.push_back(*std::move(loaded));
  }
  const auto limit = limits_of_helpers_.find(plan.helper.name);
  const uint64_t used = BytesOn(*plan.helper.device) + loader.helper_bytes();
  if (limit != limits_of_helpers_.end() && used > limit->second) {
    return absl::ResourceExhaustedError(absl::StrCat("with what that takes it would have ", used,
                                                     " bytes there, and may have ", limit->second));
  }
  device_bytes_[plan.helper.device.get()] += loader.helper_bytes();
  scratch_bytes_ += loader.scratch_bytes();
  stage->route_switch =
      RouteSwitch(plan.classes, plan.class_routes, asked_tokens_ ? 1 : kBand, plan.at_least);
  return absl::OkStatus();
}

// ---- Reading taps and caches, and binding other graphs to the weights and caches

uint64_t Model::TapBytes(size_t stage, size_t tap, const Pass& pass) const {
  const trine_tensor& tensor = stages_[stage].tap_tensors[tap];
  return stages_[stage].taps[tap].is_cache ? CacheRows(tensor).Bytes(pass.kv_slots.size())
                                           : BytesAt(tensor, pass.params);
}

absl::Status Model::ReadTap(size_t index, size_t number, const Pass& pass, void* memory) const {
  const Stage& stage = stages_[index];
  const Tap& tap = stage.taps[number];
  if (tap.is_cache) {
    return ReadCache(index, stage.tap_caches.at(tap.tensor), CacheRows(stage.tap_tensors[number]),
                     pass.kv_slots, static_cast<std::byte*>(memory));
  }
  return stage.home->ReadTensor(tap.tensor, memory,
                                BytesAt(stage.tap_tensors[number], pass.params));
}

absl::Status Model::ReadCache(size_t stage, size_t number, const CacheRows& rows,
                              std::span<const int32_t> slots, std::byte* memory) const {
  const Buffer& cache = *stages_[stage].caches.Find(*places_[stage].device, number);
  const auto* host = static_cast<const std::byte*>(cache.host_ptr());
  for (const int32_t slot : slots) {
    for (int64_t head = 0; head < rows.heads; ++head, memory += rows.row_bytes) {
      const uint64_t offset = rows.OffsetOf(slot, head);
      if (host != nullptr) {
        std::memcpy(memory, host + offset, rows.row_bytes);
      } else if (absl::Status s = cache.Read(offset, memory, rows.row_bytes); !s.ok()) {
        return s;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Model::WriteCache(size_t stage, size_t number, const CacheRows& rows,
                               std::span<const int32_t> slots, const std::byte* memory) const {
  const Buffer& cache = *stages_[stage].caches.Find(*places_[stage].device, number);
  auto* host = static_cast<std::byte*>(cache.host_ptr());
  for (const int32_t slot : slots) {
    for (int64_t head = 0; head < rows.heads; ++head, memory += rows.row_bytes) {
      const uint64_t offset = rows.OffsetOf(slot, head);
      if (host != nullptr) {
        std::memcpy(host + offset, memory, rows.row_bytes);
      } else if (absl::Status s = cache.Write(offset, memory, rows.row_bytes); !s.ok()) {
        return s;
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SegmentGraph> Model::WholeGraph() const {
  SegmentLimits limits = limits_;
  limits.count_experts = false;  // other graphs are no passes of the model
  return BuildSegmentGraph(*file_, config_, limits, {0, config_.n_layers, true, true},
                           {.finish = false, .in_place = taps_ != TapLevel::kOps});
}

absl::StatusOr<std::vector<SlotMemory>> Model::Bind(size_t stage, SegmentGraph* graph) {
  return RouteLoader(packed_, out_of_range_, store_.get(), &stages_[stage].caches)
      .BindAtHome(places_[stage].device, graph);
}

}  // namespace trine
