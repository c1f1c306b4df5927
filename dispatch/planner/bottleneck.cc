#include <algorithm>
#include <optional>
#include <utility>

#include "dispatch/planner/searches.h"

namespace trine::planner {
namespace {

// Returns the chain's problem with a level as the limit of all stages, groups and transfers.
SumProblem HoldTo(const BottleneckProblem& problem, const Reach& memory, int64_t level) {
  const Chain& chain = *problem.chain;
  SumProblem held = MakeSumProblem(chain, problem.required);
  held.reach = MakeReach(chain, [&](int d, int b, int e) {
    const StageMeasure& stage = problem.stages[d];
    return e <= memory[d][b] && stage.fixed + stage.used[e] - stage.used[b] <= stage.MostAt(level);
  });
  for (ChainGroup group : problem.held) {
    group.capacity = level;
    group.held_to_level = true;
    held.groups.push_back(std::move(group));
  }
  if (!problem.pipeline) return held;
  bool all = true;
  std::vector<std::vector<bool>> may_follow(chain.n(), std::vector<bool>(chain.n(), true));
  for (int from = 0; from < chain.n(); ++from) {
    for (int to = 0; to < chain.n(); ++to) {
      if (from == to || chain.transfer[from][to] <= level) continue;
      may_follow[from][to] = false;
      all = false;
    }
  }
  if (!all) held.may_follow = std::move(may_follow);
  return held;
}

// Returns the least higher level at which a device reaches farther or a transfer becomes possible.
int64_t NextLevel(const BottleneckProblem& problem, const Reach& memory, const SumProblem& held,
                  int64_t level) {
  const Chain& chain = *problem.chain;
  int64_t next = kInfinite;
  for (int d = 0; d < chain.n(); ++d) {
    for (int b = 0; b < chain.units; ++b) {
      const int end = held.reach[d][b] + 1;
      if (end > memory[d][b]) continue;
      next = std::min(next, problem.stages[d].LevelOf(b, end));
    }
    if (!problem.pipeline) continue;
    for (const int64_t ns : chain.transfer[d]) {
      if (ns > level) next = std::min(next, ns);
    }
  }
  return next;
}

int64_t HighestLevel(const BottleneckProblem& problem) {
  int64_t highest = StageMeasure::kFillParts;
  for (const StageMeasure& stage : problem.stages) {
    if (stage.whole == 0) highest = std::max(highest, stage.fixed + stage.used.back());
  }
  for (const ChainGroup& group : problem.held) {
    int64_t all = 0;
    for (size_t d = 0; d < group.used.size(); ++d) {
      if (!group.used[d].empty()) all += group.fixed[d] + group.used[d].back();
    }
    highest = std::max(highest, all);
  }
  if (!problem.pipeline) return highest;
  for (const std::vector<int64_t>& row : problem.chain->transfer) {
    for (const int64_t ns : row) highest = std::max(highest, ns);
  }
  return highest;
}

// Returns the least level that the placement keeps to.
int64_t LevelOf(const BottleneckProblem& problem, const Path& path) {
  const Chain& chain = *problem.chain;
  int64_t level = 0;
  path.ForEach([&](int d, int begin, int end) {
    level = std::max(level, problem.stages[d].LevelOf(begin, end));
  });
  for (const ChainGroup& group : problem.held) level = std::max(level, UseOf(group, path));
  if (!problem.pipeline) return level;
  for (int i = 1; i < path.size; ++i) {
    level = std::max(level, chain.transfer[path.device[i - 1]][path.device[i]]);
  }
  return level;
}

// Lowers best.level to the least level. A level is an integer, and a placement that keeps to a
// level keeps to any higher one, so halving the interval finds the least level. A placement that is
// found on the way lowers the upper end at once. If none is found, the lower end rises to the next
// level at which the search could find something else.
void Lower(const BottleneckProblem& problem, const Reach& memory, LevelEffort& effort,
           BottleneckFound& best) {
  int64_t low = 0;
  while (best.level > low) {
    const int64_t probe =
        best.level == kInfinite ? HighestLevel(problem) : low + (best.level - 1 - low) / 2;
    const SumProblem held = HoldTo(problem, memory, probe);
    effort.refused = kInfinite;
    const std::optional<Path> found = SearchLevel(held, effort);
    if (found.has_value()) {
      best.found.path = *found;
      best.level = std::min(best.level, LevelOf(problem, *found));
    } else if (effort.exhausted || best.level == kInfinite) {
      return;
    } else {
      const int64_t next = std::min(NextLevel(problem, memory, held, probe), effort.refused);
      low = std::max(probe + 1, next);
    }
  }
}

}  // namespace

int64_t StageMeasure::MostAt(int64_t level) const {
  if (!counted) return kInfinite;
  return whole == 0 ? level : whole / kFillParts * level + whole % kFillParts * level / kFillParts;
}

int64_t StageMeasure::LevelOf(int begin, int end) const {
  const int64_t amount = fixed + used[end] - used[begin];
  if (!counted) return 0;
  if (whole == 0) return amount;
  return (amount * kFillParts + whole - 1) / whole;
}

BottleneckFound SearchBottleneck(const BottleneckProblem& problem, const std::vector<Path>& known,
                                 uint64_t max_steps) {
  const Reach memory = problem.chain->MemoryReach();
  // Begin with any placement that fits: without steps, SearchSum returns what a guess finds.
  BottleneckFound best;
  best.found = SearchSum(HoldTo(problem, memory, HighestLevel(problem)), known, 0);
  if (!best.found.ok() && best.found.exact) return best;
  LevelEffort effort;
  effort.max_steps = max_steps;
  effort.steps = best.found.steps;
  std::vector<Path> equal = known;
  if (best.found.ok()) equal.push_back(best.found.path);
  for (const Path& path : equal) best.level = std::min(best.level, LevelOf(problem, path));
  Lower(problem, memory, effort, best);
  equal.push_back(best.found.path);
  std::erase_if(equal, [&](const Path& path) {
    return path.size == 0 || LevelOf(problem, path) > best.level;
  });
  if (!equal.empty()) {
    const uint64_t left = max_steps - std::min(max_steps, effort.steps);
    best.found = SearchSum(HoldTo(problem, memory, best.level), equal, left);
  }
  best.found.exact = best.found.exact && !effort.exhausted;
  best.found.steps += effort.steps;
  return best;
}

}  // namespace trine::planner
