#include "dispatch/planner/strategy.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "dispatch/planner/chain.h"
#include "dispatch/planner/level.h"

namespace trine::planner {
namespace {

// Returns what the strategy holds to levels, one after the other: the least level of one becomes a
// limit when the next is lowered.
std::vector<Levelled> LevelsOf(const PlanOptions& options, const Chain& chain) {
  const auto measured = [&](auto measure) {
    Levelled what;
    for (const ChainDevice& device : chain.devices) what.stages.push_back(measure(device));
    return what;
  };
  if (options.strategy == Strategy::kMemory) {
    const auto units_on_the_cpu = [](const ChainDevice& device) {
      StageMeasure measure{.used = Prefix(device.time.size())};
      if (device.cpu) std::iota(measure.used.begin(), measure.used.end(), 0);
      return measure;
    };
    const auto fill_of_a_gpu = [](const ChainDevice& device) {
      if (device.cpu) return StageMeasure{.used = Prefix(device.time.size())};
      return StageMeasure{.used = device.bytes,
                          .fixed = device.fixed_bytes,
                          .whole = std::max<int64_t>(device.limit_bytes, 1)};
    };
    return {measured(units_on_the_cpu), measured(fill_of_a_gpu)};
  }
  const bool throughput = options.optimize == Optimize::kThroughput;
  if (options.strategy == Strategy::kAuto && !throughput) return {};
  Levelled times = measured([](const ChainDevice& device) {
    return StageMeasure{.used = device.time, .fixed = device.run_ns};
  });
  times.groups = chain.workers;
  if (options.strategy == Strategy::kAuto) {
    times.transfers = true;
    times.groups.insert(times.groups.end(), chain.domains.begin(), chain.domains.end());
  }
  return {times};
}

// Looks for a placement without modes. It is found sooner than one with them, and a search that has
// a placement to begin with does not end without any.
void FindWithoutModes(SearchProblem problem, Effort& effort, std::vector<Path>& known) {
  bool has_modes = false;
  for (int d = 0; d < problem.chain->n(); ++d) {
    if (!problem.chain->devices[d].mode) continue;
    has_modes = true;
    std::iota(problem.reach[d].begin(), problem.reach[d].end(), 0);
  }
  if (!has_modes) return;
  Effort brief;
  brief.max_steps = effort.max_steps / 10;
  const Found found = FindLeast(problem, {}, brief);
  effort.steps += brief.steps;
  if (found.ok()) known.push_back(found.path);
}

Outcome SearchChain(const PlanOptions& options, const Chain& chain, DeviceMask required) {
  Effort effort;
  effort.max_steps = options.max_steps;
  SearchProblem problem = MakeSearchProblem(chain, required);
  std::vector<Path> known = chain.WholeWhenTied();
  std::erase_if(known, [&](const Path& path) { return (required & ~One(path.device[0])) != 0; });
  FindWithoutModes(problem, effort, known);
  std::optional<int64_t> level;
  for (const Levelled& what : LevelsOf(options, chain)) {
    level = LeastLevel(problem, what, known, effort);
    if (level == kInfinite) break;
    std::erase_if(known, [&](const Path& path) { return LevelOf(chain, what, path) > *level; });
    problem = HoldTo(problem, what, *level);
  }
  Outcome outcome;
  if (level != kInfinite) {
    const Found found = FindLeast(problem, known, effort);
    if (found.ok()) {
      outcome.answer = Answer{RangesOf(chain, found.path), level.value_or(found.cost / kCostPerNs)};
    }
  }
  outcome.exact = effort.exact();
  outcome.steps = effort.steps;
  return outcome;
}

}  // namespace

Outcome Search(const PlanProblem& problem, const PlanOptions& options,
               std::optional<size_t> required) {
  const std::vector<size_t> devices = SearchedDevices(problem, options.strategy);
  DeviceMask must = 0;
  if (required.has_value()) {
    const auto at = std::find(devices.begin(), devices.end(), *required);
    if (at == devices.end()) return {};
    must = One(static_cast<int>(at - devices.begin()));
  }
  if (devices.empty()) return {};
  return SearchChain(options, MakeChain(problem, options.request, devices, must), must);
}

}  // namespace trine::planner
