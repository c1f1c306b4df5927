// The placement whose busiest part is the least busy; among those that are equal in that, the one
// of least total time.
#ifndef TRINE_DISPATCH_PLANNER_BOTTLENECK_H_
#define TRINE_DISPATCH_PLANNER_BOTTLENECK_H_

#include <cstdint>
#include <vector>

#include "dispatch/planner_chain.h"
#include "dispatch/planner_sum_search.h"

namespace trine::planner {

// What a segment on a device counts for. A level is what all of them are held to.
struct StageMeasure {
  Prefix used;
  int64_t fixed = 0;
  // 0: a level is an amount. Else it is that many parts in kFillParts of this.
  int64_t whole = 0;
  bool counted = true;

  static constexpr int64_t kFillParts = 1024;
  int64_t MostAt(int64_t level) const;
  int64_t LevelOf(int begin, int end) const;
};

struct BottleneckProblem {
  const Chain* chain = nullptr;
  std::vector<StageMeasure> stages;  // one per device of the chain
  bool transfers = false;            // each transfer is held to the level as a stage is
  bool domains = false;              // and each domain
  DeviceSet required = 0;
};

struct BottleneckFound {
  int64_t level = kInfinite;
  Found found;
};

BottleneckFound SearchBottleneck(const BottleneckProblem& problem, const std::vector<Path>& known,
                                 uint64_t max_steps);

int64_t LevelOf(const BottleneckProblem& problem, const Path& path);

}  // namespace trine::planner

#endif  // TRINE_DISPATCH_PLANNER_BOTTLENECK_H_
