#include "dispatch/planner_explain.h"

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "dispatch/planner_bottleneck.h"
#include "dispatch/planner_chain.h"

namespace trine::planner {
namespace {

// Which of a device's limits are lifted.
struct Lift {
  bool memory = false;
  bool pool = false;
  bool layers = false;
};

int LayersOn(const std::vector<PlacedRange>& ranges, size_t device) {
  int layers = 0;
  for (const PlacedRange& range : ranges) {
    if (range.device == device) layers += range.end - range.begin;
  }
  return layers;
}

class SegmentExplainer {
 public:
  SegmentExplainer(const PlanProblem& problem, const PlanOptions& options, const Answer& answer,
                   Placement& placement)
      : problem_(problem), options_(Briefly(options)), answer_(answer), placement_(placement) {}

  void Run() {
    std::vector<std::pair<size_t, Answer>> lifted;  // what a device without its limit would bring
    for (PlacementSegment& segment : placement_.segments) {
      std::optional<Answer> better = Bind(segment);
      if (better.has_value()) lifted.emplace_back(segment.range.device, *std::move(better));
    }
    for (PlacementSegment& segment : placement_.segments) {
      if (segment.bound.empty()) segment.bound = Unbound(segment, lifted);
    }
  }

 private:
  // One limit at a time, and both kinds of memory together where neither alone is the reason.
  std::optional<Answer> Bind(PlacementSegment& segment) {
    const PlanDevice& device = problem_.devices[segment.range.device];
    const PlanPool& pool = problem_.pools[device.pool];
    const std::string memory = absl::StrCat(device.name, " (", BytesText(device.limit_bytes), ")");
    const std::string shared =
        absl::StrCat("pool ", pool.name, " (", BytesText(pool.capacity_bytes), ")");
    const bool layers = device.max_layers < problem_.layers;
    const bool limited = device.limit_bytes != kNoLimit;
    const bool pooled = pool.capacity_bytes != kNoLimit;
    std::optional<Answer> better;
    if (limited && (better = Try(segment, {.memory = true}))) {
      segment.bound = absl::StrCat("memory of ", memory);
    } else if (pooled && (better = Try(segment, {.pool = true}))) {
      segment.bound = shared;
    } else if (limited && pooled && (better = Try(segment, {.memory = true, .pool = true}))) {
      segment.bound = absl::StrCat("memory of ", memory, " and ", shared);
    } else if (layers && (better = Try(segment, {.layers = true}))) {
      segment.bound = absl::StrCat("at most ", device.max_layers, " layers on ", device.name);
    }
    return better;
  }

  // The plan without the limits, when it is better; and what it takes is written down.
  std::optional<Answer> Try(PlacementSegment& segment, const Lift& lift) const {
    const size_t d = segment.range.device;
    PlanProblem other = problem_;
    PlanDevice& device = other.devices[d];
    if (lift.memory) device.limit_bytes = kNoLimit;
    if (lift.pool) other.pools[device.pool].capacity_bytes = kNoLimit;
    if (lift.layers) device.max_layers = std::numeric_limits<int>::max();
    Outcome outcome = Search(other, options_);
    if (!outcome.answer.has_value() || outcome.answer->objective >= answer_.objective) {
      return std::nullopt;
    }
    const auto placement = EvaluatePlacement(other, options_.request, outcome.answer->ranges);
    if (!placement.ok()) return std::nullopt;
    segment.change = absl::StrCat("with ", More(lift, d, *placement), ": ",
                                  ObjectiveText(options_, outcome.answer->objective),
                                  " instead of ", ObjectiveText(options_, answer_.objective));
    return std::move(outcome.answer);
  }

  std::string More(const Lift& lift, size_t d, const Placement& placement) const {
    const PlanDevice& device = problem_.devices[d];
    const MemoryUse& pool = placement.pools[device.pool];
    const uint64_t has = problem_.pools[device.pool].capacity_bytes;
    std::string more;
    if (lift.memory) {
      const uint64_t used = placement.devices[d].used_bytes;
      absl::StrAppend(&more, Above(used, device.limit_bytes), " more on ", device.name);
    }
    if (lift.pool) {
      absl::StrAppend(&more, more.empty() ? "" : " and ", Above(pool.used_bytes, has),
                      " more in pool ", pool.name);
    }
    if (lift.layers) more = absl::StrCat("no such limit on ", device.name);
    std::vector<PlacedRange> ranges;
    for (const PlacementSegment& s : placement.segments) ranges.push_back(s.range);
    const int layers = LayersOn(ranges, d) - LayersOn(answer_.ranges, d);
    if (layers > 0) {
      absl::StrAppend(&more, " another ", layers, layers == 1 ? " layer" : " layers",
                      " would go there");
    } else {
      absl::StrAppend(&more, " the layers would be placed otherwise");
    }
    return more;
  }

  static std::string Above(uint64_t used, uint64_t limit) {
    return BytesText(used > limit ? used - limit : 0);
  }

  // A segment that no limit of its own device holds back.
  std::string Unbound(const PlacementSegment& segment,
                      const std::vector<std::pair<size_t, Answer>>& lifted) const {
    const size_t d = segment.range.device;
    for (const auto& [device, answer] : lifted) {
      if (device != d && LayersOn(answer.ranges, d) < LayersOn(answer_.ranges, d)) {
        return absl::StrCat("what ", problem_.devices[device].name, " has no room for");
      }
    }
    if (SearchedDevices(problem_, options_.split_ends).size() == 1) return "being the only device";
    return options_.strategy == Strategy::kBalanced ? "nothing: most even" : "nothing: fastest";
  }

  const PlanProblem& problem_;
  const PlanOptions options_;
  const Answer& answer_;
  Placement& placement_;
};

// In proportion to memory there is nothing to better by lifting a limit: the parts would change.
void ExplainShares(const PlanProblem& problem, const PlanOptions& options, const Answer& answer,
                   Placement& placement) {
  const bool one = SearchedDevices(problem, options.split_ends).size() == 1;
  for (PlacementSegment& segment : placement.segments) {
    if (one) {
      segment.bound = "being the only device";
    } else if (problem.devices[segment.range.device].tier == "cpu") {
      segment.bound = "what the GPUs have no room for";
    } else {
      segment.bound = absl::StrCat("its share: no GPU is filled beyond ",
                                   ObjectiveText(options, answer.objective));
    }
  }
}

}  // namespace

void ExplainSegments(const PlanProblem& problem, const PlanOptions& options, const Answer& answer,
                     Placement& placement) {
  if (options.strategy == Strategy::kMemory) {
    return ExplainShares(problem, options, answer, placement);
  }
  SegmentExplainer(problem, options, answer, placement).Run();
}

std::string ObjectiveText(const PlanOptions& options, int64_t objective) {
  if (options.strategy != Strategy::kMemory) return TimeText(objective);
  return absl::StrFormat("%.1f %%", static_cast<double>(objective) * 100 /
                                        static_cast<double>(StageMeasure::kFillParts));
}

PlanOptions Briefly(const PlanOptions& options) {
  PlanOptions brief = options;
  brief.explain = false;
  brief.max_steps = options.max_steps / 10;
  return brief;
}

}  // namespace trine::planner
