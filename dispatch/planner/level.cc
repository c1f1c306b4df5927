#include "dispatch/planner/level.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace trine::planner {
int64_t StageMeasure::MostAt(int64_t level) const {
  return whole == 0 ? level : whole / kFillParts * level + whole % kFillParts * level / kFillParts;
}

int64_t StageMeasure::LevelOf(int begin, int end) const {
  const int64_t amount = fixed + used[end] - used[begin];
  if (whole == 0) return amount;
  return (amount * kFillParts + whole - 1) / whole;
}

int64_t LevelOf(const Chain& chain, const Levelled& what, const Path& path) {
  int64_t level = 0;
  path.ForEach([&](int d, int begin, int end) {
    level = std::max(level, what.stages[d].LevelOf(begin, end));
  });
  for (const ChainGroup& group : what.groups) level = std::max(level, UseOf(group, path));
  for (int i = 1; what.transfers && i < path.size; ++i) {
    level = std::max(level, chain.transfer[path.device[i - 1]][path.device[i]]);
  }
  return level;
}

SearchProblem HoldTo(const SearchProblem& problem, const Levelled& what, int64_t level) {
  const Chain& chain = *problem.chain;
  SearchProblem held = problem;
  held.reach = MakeReach(chain, [&](int d, int b, int e) {
    const StageMeasure& stage = what.stages[d];
    return e <= problem.reach[d][b] &&
           stage.fixed + stage.used[e] - stage.used[b] <= stage.MostAt(level);
  });
  for (const ChainGroup& group : what.groups) {
    held.groups.push_back(group);
    held.groups.back().capacity = level;
  }
  for (int from = 0; what.transfers && from < chain.n(); ++from) {
    for (int to = 0; to < chain.n(); ++to) {
      if (chain.transfer[from][to] > level) held.cost.step[from][to] = kInfinite;
    }
  }
  return held;
}

// A level is an integer, and a placement that keeps to a level keeps to any higher one, so halving
// an interval finds the least level. A placement that is found lowers the upper end to its own
// level. Every second time the level just below the upper end is tried instead: mostly nothing is
// there long before the halves have become small.
int64_t LeastLevel(const SearchProblem& problem, const Levelled& what, std::vector<Path>& known,
                   Effort& effort) {
  const Chain& chain = *problem.chain;
  if (known.empty()) {
    const std::optional<Path> any = FindAny(problem, effort);
    if (!any.has_value()) return kInfinite;
    known.push_back(*any);
  }
  int64_t least = kInfinite;
  for (const Path& path : known) least = std::min(least, LevelOf(chain, what, path));
  int64_t low = 0;
  for (bool halve = true; low < least; halve = !halve) {
    if (effort.Spent()) break;
    const int64_t probe = halve ? low + (least - 1 - low) / 2 : least - 1;
    const std::optional<Path> found = FindAny(HoldTo(problem, what, probe), effort);
    if (found.has_value()) {
      known.push_back(*found);
      least = LevelOf(chain, what, *found);
    } else {
      low = probe + 1;
    }
  }
  return least;
}

}  // namespace trine::planner
