// Other ways that passes may take through a stage: which, and what is loaded for them.
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugins/device_fault.h"
#include "runtime/model/detour_loader.h"
#include "runtime/model/model.h"

namespace trine {

absl::Status Model::PlanDetours(const DispatchOptions& options,
                                const std::vector<SegmentGraph>& graphs,
                                const OutOfRange& out_of_range) {
  dispatch_log_ = options.log;
  limits_of_helpers_ = options.limits;
  asked_tokens_ = options.rule.from_tokens > 0;
  for (size_t i = 0; !options.helpers.empty() && i < graphs.size(); ++i) {
    Stage& stage = stages_[load_stages_[i]];
    if (stage.home != nullptr) continue;  // in pieces as it is
    auto whole = BuildSegmentGraph(*file_, config_, limits_, loads_[i].span, {.finish = false});
    if (!whole.ok()) return whole.status();
    const auto can_stream = [&](const gguf::TensorInfo& tensor) {
      return out_of_range.count(&tensor) == 0 && (file_->mapped() || !packed_.Holds(&tensor));
    };
    HomeWeights weights;
    weights.file_mapped = file_->mapped();
    for (const WeightUse& use : graphs[i].weights) {
      weights.packed = weights.packed || use.packed.has_value();
      if (use.packed) weights.bytes += use.info->bytes;
    }
    stage.plan = PlanDetour(loads_[i], *whole, limits_, options, weights, can_stream);
    if (!stage.plan || stage.plan->kind != DetourKind::kTwin) continue;
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

absl::Status Model::LoadDetours(const HostServices& host, const OutOfRange& out_of_range) {
  for (size_t i = 0; i < stages_.size(); ++i) {
    Stage& stage = stages_[i];
    if (!stage.plan) continue;
    const absl::Status s = LoadDetour(&stage, i, out_of_range);
    if (s.ok()) continue;
    if (!FaultyDevice(s).empty() && !absl::IsResourceExhausted(s)) return s;
    host.Say(TRINE_LOG_WARNING, absl::StrCat(places_[i].device_name, " goes without the help of ",
                                             stage.plan->helper.name, ": ", s.message()));
    stage.detours.clear();
    stage.plan.reset();
  }
  return absl::OkStatus();
}

absl::Status Model::LoadDetour(Stage* stage, size_t index, const OutOfRange& out_of_range) {
  // How far beyond a border passes keep to the way they took.
  constexpr double kBand = 1.25;
  DetourLoader loader(packed_, out_of_range, store_.get(), &stage->caches);
  const DetourPlan& plan = *stage->plan;
  for (size_t route = 0; route < plan.routes.size(); ++route) {
    auto whole =
        BuildSegmentGraph(*file_, config_, limits_, places_[index].span, {.finish = false});
    if (!whole.ok()) return whole.status();
    auto way = loader.Load(places_[index], plan, route, *std::move(whole));
    if (!way.ok()) return way.status();
    stage->detours.push_back(*std::move(way));
  }
  const auto limit = limits_of_helpers_.find(plan.helper.name);
  const uint64_t used = BytesOn(*plan.helper.device) + loader.helper_bytes();
  if (limit != limits_of_helpers_.end() && used > limit->second) {
    return absl::ResourceExhaustedError(absl::StrCat("with what that takes it would have ", used,
                                                     " bytes there, and may have ", limit->second));
  }
  device_bytes_[plan.helper.device.get()] += loader.helper_bytes();
  scratch_bytes_ += loader.scratch_bytes();
  stage->routes = RouteSwitch(plan.classes, plan.class_routes, asked_tokens_ ? 1 : kBand);
  return absl::OkStatus();
}

}  // namespace trine
