// The planner's three searches. SearchBottleneck finds the placement whose busiest part is least
// busy; SearchLevel finds any placement in which no part is busier than a level; SearchSum finds
// the placement of least total time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dispatch/planner/chain.h"
#include "dispatch/planner/guess.h"
#include "dispatch/planner/relaxed.h"

namespace trine::planner {

struct LevelEffort {
  uint64_t steps = 0;
  uint64_t max_steps = 0;
  bool exhausted = false;  // steps ran out before it was proven that there is no placement
  // The least use of a group that was refused because it was above the level. No level below this
  // use lets the groups take more.
  int64_t refused = kInfinite;
};

// Returns any placement that fits; ignores costs. The caller has put the level into the problem:
// its reach, its groups' capacities and its `may_follow`.
std::optional<Path> SearchLevel(const SumProblem& problem, LevelEffort& effort);

// Measures how busy or full a device is with a segment. The search lowers the level, a limit that
// the measures of all segments must keep to.
struct StageMeasure {
  Prefix used;
  int64_t fixed = 0;
  // 0: a level is an amount. Otherwise a level counts parts of `whole`, each 1 / kFillParts of it.
  int64_t whole = 0;
  bool counted = true;  // false: no level limits the device

  static constexpr int64_t kFillParts = 1024;
  // Returns the largest amount that keeps to the level.
  int64_t MostAt(int64_t level) const;
  // Returns the least level that a segment of units [begin, end) keeps to.
  int64_t LevelOf(int begin, int end) const;
};

struct BottleneckProblem {
  const Chain* chain = nullptr;
  std::vector<StageMeasure> stages;  // one per device of the chain
  std::vector<ChainGroup> held;      // groups that are held to the level, too
  bool pipeline = false;             // transfers are held to the level, too
  DeviceMask required = 0;
};

struct BottleneckFound {
  int64_t level = kInfinite;
  Found found;
};

// Finds the placement with the lowest level; of several, one of least total time. `known`
// placements take part in the comparison.
BottleneckFound SearchBottleneck(const BottleneckProblem& problem, const std::vector<Path>& known,
                                 uint64_t max_steps);

// Finds the placement of least total time when devices share pools or domains. `known` placements
// take part in the comparison, even if they break a limit of the problem: a placement whose ends
// share a matrix may need less memory than the problem says. If max_steps is 0, returns the best
// placement that can be found without a search.
Found SearchSum(const SumProblem& problem, const std::vector<Path>& known, uint64_t max_steps);

}  // namespace trine::planner
