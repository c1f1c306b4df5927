#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "dispatch/planner_chain.h"
#include "dispatch/planner_explain.h"

namespace trine::planner {
namespace {

// The least that any one unit the device can run takes on it; kNoLimit when it can run none.
uint64_t LeastBytes(const PlanProblem& problem, const PlanDevice& device) {
  uint64_t least = kNoLimit;
  for (int unit = 0; unit < problem.units(); ++unit) {
    if (CanRun(device, unit)) least = std::min(least, device.fixed_bytes + UnitBytes(device, unit));
  }
  return least;
}

// Of a device that was not searched though it may be used.
std::string WhyNotSearched(const PlanProblem& problem, const PlanDevice& device, size_t searched) {
  const PlanPool& pool = problem.pools[device.pool];
  const uint64_t least = LeastBytes(problem, device);
  if (least == kNoLimit) return "it can run no part of the model";
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

// What devices that may be used can have of a pool together, and who they are.
struct PoolRoom {
  uint64_t bytes = 0;
  std::string text;
};

PoolRoom RoomIn(const PlanProblem& problem, size_t pool) {
  PoolRoom room;
  for (const PlanDevice& device : problem.devices) {
    if (device.pool != pool || !device.left_out.empty()) continue;
    const uint64_t left = problem.pools[pool].capacity_bytes - room.bytes;
    room.bytes += std::min(left, device.limit_bytes);
    absl::StrAppend(&room.text, room.text.empty() ? "" : ", ", device.name, ": limit ",
                    BytesText(device.limit_bytes), ", scratch ", BytesText(device.fixed_bytes));
  }
  return room;
}

// Each unit where it takes least.
uint64_t LeastNeeded(const PlanProblem& problem) {
  uint64_t needed = 0;
  for (int unit = 0; unit < problem.units(); ++unit) {
    uint64_t least = kNoLimit;
    for (const PlanDevice& device : problem.devices) {
      if (!device.left_out.empty() || !CanRun(device, unit)) continue;
      least = std::min(least, UnitBytes(device, unit));
    }
    if (least != kNoLimit) needed += least;
  }
  return needed;
}

}  // namespace

void ExplainLeftOut(const PlanProblem& problem, const PlanOptions& options, const Answer& answer,
                    Placement& placement) {
  const std::vector<size_t> searched = SearchedDevices(problem, options.split_ends);
  for (size_t d = 0; d < problem.devices.size(); ++d) {
    const bool used = std::any_of(answer.ranges.begin(), answer.ranges.end(),
                                  [d](const PlacedRange& r) { return r.device == d; });
    if (used) continue;
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
