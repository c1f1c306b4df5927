#include "tools/cli/options/describe_placement.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/placement/layer_parts.h"

namespace trine {
namespace {

std::vector<LayerRange> RangesOf(const Engine& engine) {
  std::vector<LayerRange> ranges;
  for (const SegmentPlace& p : engine.model()->places()) {
    ranges.push_back({p.span, p.device_name});
  }
  return ranges;
}

// Describes the slots of a stage, with the part of the choices that they get by the counts so far.
std::string SlotsText(const DividedExperts& divided, const ExpertHits& hits) {
  const ExpertSlots& slots = divided.slots(0);
  std::string text = absl::StrCat(slots.slots(), " of ", slots.experts(), " experts in each of ",
                                  divided.layers());
  if (divided.in_place()) return text + " without copies";
  double shares = 0;
  for (size_t i = 0; i < divided.layers(); ++i) {
    const std::vector<uint64_t> of_layer = hits.OfLayer(divided.number(i));
    const bool known = std::any_of(of_layer.begin(), of_layer.end(), [](uint64_t n) { return n; });
    if (!known) return text;
    shares += HitShare(of_layer, slots.slots());
  }
  absl::StrAppendFormat(&text, ", for %.0f %% of choices",
                        100 * shares / static_cast<double>(divided.layers()));
  return text;
}

// Describes the parts of layers that are on other devices than the rest of the layers: adds to the
// note of each stage, and to the list of devices with parts.
void DescribeParts(const Model& model, const ExpertHits& hits,
                   std::vector<std::vector<std::string>>* notes, std::vector<PartsText>* parts) {
  if (model.file() == nullptr) return;
  std::set<std::string> other;
  const std::vector<PartsOnDevice> groups =
      GroupMoved(FindLayerParts(*model.file()), model.moved_weights(), &other);
  for (const PartsOnDevice& group : groups) {
    const char* const what = group.experts ? "experts" : "feed-forward";
    size_t count = 0;
    for (size_t stage = 0; stage < notes->size(); ++stage) {
      const SegmentPlace& place = model.places()[stage];
      if (place.device_name == group.device) continue;
      const auto in_stage = [&](size_t layer) {
        return static_cast<int64_t>(layer) >= place.span.begin &&
               static_cast<int64_t>(layer) < place.span.end;
      };
      const auto away = std::count_if(group.layers.begin(), group.layers.end(), in_stage);
      if (away == 0) continue;
      count += static_cast<size_t>(away);
      const DividedExperts* const divided = model.experts(stage);
      const auto whole = place.span.layers() - away;
      if (divided == nullptr || whole > 0) {
        (*notes)[stage].push_back(whole > 0 ? absl::StrCat(what, " of ", whole)
                                            : absl::StrCat("without ", what));
      }
      if (divided == nullptr) continue;
      (*notes)[stage].push_back(SlotsText(*divided, hits));
    }
    if (count > 0) parts->push_back({group.device, absl::StrCat(what, " of ", count)});
  }
  for (size_t stage = 0; stage < notes->size(); ++stage) {
    std::set<std::string> devices = other;
    devices.erase(model.places()[stage].device_name);
    if (devices.empty()) continue;
    (*notes)[stage].push_back(absl::StrCat("matrices on ", absl::StrJoin(devices, " and ")));
  }
}

// Returns what is to be said of each stage: that it is fast, which of its parts are elsewhere, and
// which passes other devices run or help with. Sets `parts` to what other devices have.
std::vector<std::string> NotesOf(const Model& model, const ExpertHits& hits,
                                 std::vector<PartsText>* parts) {
  std::vector<std::vector<std::string>> notes(model.stage_count());
  for (size_t stage = 0; stage < notes.size(); ++stage) {
    if (!model.IsExact(stage)) notes[stage].push_back("fast");
  }
  DescribeParts(model, hits, &notes, parts);
  for (const RouteInfo& route : model.routes()) {
    const char* what = !route.small ? "prompts" : route.large ? "decoding and prompts" : "decoding";
    notes[route.stage].push_back(
        route.kind == RouteKind::kFetched
            ? absl::StrCat(what, " with fetched weights, ", model.limits().max_tokens,
                           " tokens a pass")
            : absl::StrCat(what, route.kind == RouteKind::kTwin ? " by " : " with ", route.helper));
  }
  std::vector<std::string> texts;
  for (const auto& of_stage : notes) texts.push_back(absl::StrJoin(of_stage, ", "));
  return texts;
}

bool SharesRows(const Engine& engine, const EngineOptions& options) {
  return options.placement.mode == SplitMode::kRow && engine.model()->StageDevices(0).size() > 1;
}

}  // namespace

std::string DescribePlacement(const Engine& engine, const EngineOptions& options) {
  const std::shared_ptr<const Model> model = engine.model();
  if (!SharesRows(engine, options)) {
    std::vector<PartsText> parts;
    const std::vector<std::string> notes = NotesOf(*model, engine.expert_hits(), &parts);
    return PlacementText(RangesOf(engine), notes, parts);
  }
  const auto layers = static_cast<int>(engine.config().n_layers);
  return absl::StrCat("rows of ", RowsText(model->StageDevices(0), layers),
                      model->IsExact(0) ? "" : ", fast");
}

}  // namespace trine
