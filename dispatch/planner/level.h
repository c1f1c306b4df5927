// Finds the placement whose busiest or fullest part is least busy or full.
#pragma once

#include <cstdint>
#include <vector>

#include "dispatch/planner/chain.h"
#include "dispatch/planner/search.h"

namespace trine::planner {

// Measures how busy or full a device is with a segment.
struct StageMeasure {
  Prefix used;  // all 0: no level limits the device
  int64_t fixed = 0;
  // 0: a level is an amount. Otherwise a level counts parts of `whole`, each 1 / kFillParts of it.
  int64_t whole = 0;

  static constexpr int64_t kFillParts = 1024;
  // Returns the largest amount that keeps to the level.
  int64_t MostAt(int64_t level) const;
  // Returns the least level that a segment of units [begin, end) keeps to.
  int64_t LevelOf(int begin, int end) const;
};

// What a level limits.
struct Levelled {
  std::vector<StageMeasure> stages;  // one per device of the chain
  std::vector<ChainGroup> groups;    // the level is their capacity
  bool transfers = false;            // the time of each transfer is held to the level, too
};

// Returns the least level that the placement keeps to.
int64_t LevelOf(const Chain& chain, const Levelled& what, const Path& path);

// Returns the problem with a level as the limit of all stages, groups and transfers.
SearchProblem HoldTo(const SearchProblem& problem, const Levelled& what, int64_t level);

// Finds the least level to which a placement keeps. `known` placements count, too; adds the
// placements that are found. Returns kInfinite if none is found.
int64_t LeastLevel(const SearchProblem& problem, const Levelled& what, std::vector<Path>& known,
                   Effort& effort);

}  // namespace trine::planner
