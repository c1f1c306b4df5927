#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "dispatch/planner/chain.h"
#include "dispatch/planner/level.h"
#include "dispatch/planner/strategy.h"

namespace trine::planner {
namespace {

// Says which limits of a device are lifted.
struct Lift {
  bool memory = false;
  bool pool = false;
};

int64_t LayersOn(const std::vector<PlacedRange>& ranges, size_t device) {
  int64_t layers = 0;
  for (const PlacedRange& range : ranges) {
    if (range.device == device) layers += range.layers();
  }
  return layers;
}

class SegmentExplainer {
 public:
  SegmentExplainer(const PlanProblem& problem, const PlanOptions& options, const Answer& answer,
                   Placement& placement)
      : problem_(problem), options_(Briefly(options)), answer_(answer), placement_(placement) {}

  void Run() {
    std::vector<std::pair<size_t, Answer>> lifted;  // the better answer without a limit, by device
    for (PlacementSegment& segment : placement_.segments) {
      std::optional<Answer> better = Bind(segment);
      if (better.has_value()) lifted.emplace_back(segment.range.device, *std::move(better));
    }
    for (PlacementSegment& segment : placement_.segments) {
      if (segment.bound.empty()) segment.bound = Unbound(segment, lifted);
    }
  }

 private:
  // Tries one limit at a time, then both kinds of memory together if neither alone is the reason.
  std::optional<Answer> Bind(PlacementSegment& segment) {
    const PlanDevice& device = problem_.devices[FirstEntry(problem_, segment.range.device)];
    const PlanPool& pool = problem_.pools[device.pool];
    const std::string memory = absl::StrCat(device.name, " (", BytesText(device.limit_bytes), ")");
    const std::string shared =
        absl::StrCat("pool ", pool.name, " (", BytesText(pool.capacity_bytes), ")");
    const bool limited = device.limit_bytes != kNoLimit;
    const bool pooled = pool.capacity_bytes != kNoLimit;
    std::optional<Answer> better;
    if (limited && (better = Try(segment, {.memory = true}))) {
      segment.bound = absl::StrCat("memory of ", memory);
    } else if (pooled && (better = Try(segment, {.pool = true}))) {
      segment.bound = shared;
    } else if (limited && pooled && (better = Try(segment, {.memory = true, .pool = true}))) {
      segment.bound = absl::StrCat("memory of ", memory, " and ", shared);
    }
    return better;
  }

  // Returns the answer without the limits if it is better, and writes segment.change.
  std::optional<Answer> Try(PlacementSegment& segment, const Lift& lift) const {
    const size_t d = segment.range.device;
    PlanProblem other = problem_;
    PlanDevice& device = other.devices[FirstEntry(problem_, d)];
    if (lift.memory) device.limit_bytes = kNoLimit;
    if (lift.pool) other.pools[device.pool].capacity_bytes = kNoLimit;
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
    const PlanDevice& device = problem_.devices[FirstEntry(problem_, d)];
    const MemoryUse& pool = placement.pools[device.pool];
    const uint64_t has = problem_.pools[device.pool].capacity_bytes;
    std::string more;
    if (lift.memory) {
      const uint64_t used = placement.devices[FirstEntry(problem_, d)].used_bytes;
      absl::StrAppend(&more, Above(used, device.limit_bytes), " more on ", device.name);
    }
    if (lift.pool) {
      absl::StrAppend(&more, more.empty() ? "" : " and ", Above(pool.used_bytes, has),
                      " more in pool ", pool.name);
    }
    std::vector<PlacedRange> ranges;
    for (const PlacementSegment& s : placement.segments) ranges.push_back(s.range);
    const int64_t layers = LayersOn(ranges, d) - LayersOn(answer_.ranges, d);
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

  // Explains a segment whose device has no limit that decides its size.
  std::string Unbound(const PlacementSegment& segment,
                      const std::vector<std::pair<size_t, Answer>>& lifted) const {
    const size_t d = segment.range.device;
    for (const auto& [device, answer] : lifted) {
      if (device != d && LayersOn(answer.ranges, d) < LayersOn(answer_.ranges, d)) {
        return absl::StrCat("what ", problem_.devices[device].name, " has no room for");
      }
    }
    if (SearchedDevices(problem_, options_.strategy).size() == 1) {
      return "being the only device that may have layers";
    }
    return options_.strategy == Strategy::kBalanced ? "nothing: most even" : "nothing: fastest";
  }

  const PlanProblem& problem_;
  const PlanOptions options_;
  const Answer& answer_;
  Placement& placement_;
};

// Explains shares in proportion to memory. Lifting a limit would not improve them, only change
// them.
void ExplainShares(const PlanProblem& problem, const PlanOptions& options, const Answer& answer,
                   Placement& placement) {
  const bool one = SearchedDevices(problem, options.strategy).size() == 1;
  for (PlacementSegment& segment : placement.segments) {
    if (one) {
      segment.bound = "being the only device that may have layers";
    } else if (problem.devices[segment.range.device].tier == "cpu") {
      segment.bound = "what the GPUs have no room for";
    } else {
      segment.bound = absl::StrCat("its share: no GPU is filled beyond ",
                                   ObjectiveText(options, answer.objective));
    }
  }
}

// Returns the least bytes of any one unit that the device can run; kNoLimit when it can run none.
uint64_t LeastBytes(const PlanProblem& problem, const PlanDevice& device) {
  uint64_t least = kNoLimit;
  for (int unit = 0; unit < problem.units(); ++unit) {
    if (CanRun(device, unit)) least = std::min(least, device.fixed_bytes + UnitBytes(device, unit));
  }
  return least;
}

// Explains why a device that may be used was not searched.
std::string WhyNotSearched(const PlanProblem& problem, const PlanDevice& device, size_t searched) {
  const PlanPool& pool = problem.pools[device.pool];
  const uint64_t least = LeastBytes(problem, device);
  if (least == kNoLimit) return "it can run no whole layer";
  if (least > device.limit_bytes) {
    return absl::StrCat("too small: its scratch and one layer need ", BytesText(least),
                        ", and it has ", BytesText(device.limit_bytes));
  }
  if (least > pool.capacity_bytes) {
    return absl::StrCat("too small: its scratch and one layer need ", BytesText(least),
                        ", and pool ", pool.name, " has ", BytesText(pool.capacity_bytes));
  }
  if (searched < kMostDevices) return "limit: no part of the model may go there";
  return absl::StrCat("not looked at: ", kMostDevices, " devices came before it");
}

std::string WhyNotBest(const PlanProblem& problem, const PlanOptions& options, const Answer& answer,
                       size_t device) {
  const Outcome with = Search(problem, Briefly(options), device);
  if (!with.answer.has_value()) {
    return with.exact ? "too small: no placement that uses it fits"
                      : "no placement that uses it was found";
  }
  const std::string cost = ObjectiveText(options, with.answer->objective);
  const std::string best = ObjectiveText(options, answer.objective);
  if (with.answer->objective <= answer.objective) {
    return absl::StrCat("no gain: with it, ", cost, " as without");
  }
  const double ratio = answer.objective == 0 ? 0
                                             : static_cast<double>(with.answer->objective) /
                                                   static_cast<double>(answer.objective);
  const std::string more = ratio == 0 ? "" : absl::StrFormat(" (%.3g times)", ratio);
  if (options.strategy == Strategy::kMemory) {
    return absl::StrCat("not needed: with it, ", cost, " filled instead of ", best);
  }
  const char* const found =
      with.exact ? "too slow: with it, " : "too slow, as far as was searched: with it, ";
  return absl::StrCat(found, cost, " instead of ", best, more);
}

std::string Reason(const PlanProblem& problem, const PlanOptions& options, const Answer& answer,
                   const std::vector<size_t>& searched, size_t d) {
  const PlanDevice& device = problem.devices[d];
  if (!device.left_out.empty()) return device.left_out;
  if (std::count(searched.begin(), searched.end(), d) == 0) {
    return WhyNotSearched(problem, device, searched.size());
  }
  if (options.strategy == Strategy::kMemory && device.tier == "cpu") {
    return "the GPUs have room for everything";
  }
  return WhyNotBest(problem, options, answer, d);
}

// The bytes of a pool that its usable devices can have together, and a text that lists them.
struct PoolRoom {
  uint64_t bytes = 0;
  std::string text;
};

PoolRoom RoomIn(const PlanProblem& problem, size_t pool) {
  PoolRoom room;
  for (const PlanDevice& device : problem.devices) {
    if (device.pool != pool || !device.left_out.empty() || device.mode_of.has_value()) continue;
    const uint64_t left = problem.pools[pool].capacity_bytes - room.bytes;
    room.bytes += std::min(left, device.limit_bytes);
    absl::StrAppend(&room.text, room.text.empty() ? "" : ", ", device.name, ": ");
    if (device.limit_bytes != kNoLimit) {
      absl::StrAppend(&room.text, "limit ", BytesText(device.limit_bytes), ", ");
    }
    absl::StrAppend(&room.text, "scratch ", BytesText(device.fixed_bytes));
  }
  return room;
}

// Returns the bytes that are needed if each unit is on the device where it takes the least.
uint64_t LeastNeeded(const PlanProblem& problem) {
  uint64_t needed = 0;
  for (int unit = 0; unit < problem.units(); ++unit) {
    uint64_t least = kNoLimit;
    for (const PlanDevice& device : problem.devices) {
      if (!device.left_out.empty() || !CanRun(device, unit)) continue;
      uint64_t bytes = UnitBytes(device, unit);
      for (const PlanShare& share : device.elsewhere) bytes += share.bytes[unit];
      least = std::min(least, bytes);
    }
    if (least != kNoLimit) needed += least;
  }
  return needed;
}

// Returns whether the device has layers or parts of layers.
bool Uses(const Placement& placement, const PlanProblem& problem, size_t device) {
  return std::any_of(
      placement.segments.begin(), placement.segments.end(), [&](const PlacementSegment& s) {
        return FirstEntry(problem, s.range.device) == device ||
               std::any_of(s.elsewhere.begin(), s.elsewhere.end(),
                           [&](const SegmentShare& share) { return share.device == device; });
      });
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

void ExplainLeftOut(const PlanProblem& problem, const PlanOptions& options, const Answer& answer,
                    Placement& placement) {
  const std::vector<size_t> searched = SearchedDevices(problem, options.strategy);
  for (size_t d = 0; d < problem.devices.size(); ++d) {
    if (problem.devices[d].mode_of.has_value() || Uses(placement, problem, d)) continue;
    placement.left_out.push_back({d, Reason(problem, options, answer, searched, d)});
  }
}

absl::Status NothingFits(const PlanProblem& problem, const PlanOptions& options, bool proven) {
  std::string text = proven ? "plan: the model does not fit"
                            : absl::StrCat("plan: no placement was found in ", options.max_steps,
                                           " steps of the search");
  absl::StrAppend(&text, ": weights and KV need ", BytesText(LeastNeeded(problem)));
  for (size_t i = 0; i < problem.pools.size(); ++i) {
    const PoolRoom room = RoomIn(problem, i);
    if (room.text.empty()) continue;
    absl::StrAppend(&text, "; pool ", problem.pools[i].name, " has ",
                    BytesText(problem.pools[i].capacity_bytes), ", of which ",
                    BytesText(room.bytes), " may be used (", room.text, ")");
  }
  for (const PlanDevice& device : problem.devices) {
    if (device.left_out.empty()) continue;
    absl::StrAppend(&text, "; ", device.name, " is not used: ", device.left_out);
  }
  return absl::ResourceExhaustedError(text);
}

}  // namespace trine::planner
