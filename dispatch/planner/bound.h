// Bounds what placements can still cost, or use of a group, from each beginning. The bound is a
// dynamic program over the set of devices in use, the last of them, and the boundary that they
// reached. It knows the limits of each device by itself, and no limit that devices share. So no
// placement can do better, and a search drops hopeless beginnings by it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dispatch/planner/chain.h"

namespace trine::planner {

// Something that adds up along a placement: its cost, or what it uses of a group.
struct Measure {
  std::vector<Prefix> units;  // [device]
  // [from][to]: what a segment on `to` after one on `from` adds besides its units; kInfinite: `to`
  // may not follow. The last row is for the first segment.
  std::vector<std::vector<int64_t>> step;

  int64_t Run(int d, int begin, int end) const { return units[d][end] - units[d][begin]; }
};

// What a placement must keep to, and the cost that should be least.
struct SearchProblem {
  const Chain* chain = nullptr;
  Reach reach;
  std::vector<ChainGroup> groups;
  DeviceMask required = 0;  // devices that must have a segment
  Measure cost;
};

class Bound {
 public:
  // REQUIRES: `problem` outlives the bound.
  Bound(const SearchProblem& problem, Measure measure);

  const Measure& measure() const { return measure_; }
  // Returns the least that the units from `boundary` to the end add. They go to devices outside
  // `in_use`, after a segment on `last`, which is in `in_use`. Returns kInfinite or more if that is
  // impossible, or if the devices in use can't reach the boundary.
  int64_t ToGo(DeviceMask in_use, int last, int boundary) const {
    return to_go_[Index(in_use, last) + static_cast<size_t>(boundary)];
  }
  // Returns the least that any placement of all units adds up to.
  int64_t Best() const { return to_go_[0]; }
  // Returns a boundary before which ToGo is infinite.
  int Earliest(DeviceMask in_use, int last) const { return earliest_[Row(in_use, last)]; }
  // Returns a placement that adds up to Best(). REQUIRES: Best() is finite.
  Path BestPath() const;
  uint64_t steps() const { return steps_; }

 private:
  // Tables have a row for each set and each of its devices as the last one. The empty set has one
  // row.
  size_t Row(DeviceMask in_use, int last) const {
    return first_row_[in_use] + static_cast<size_t>(std::popcount(in_use & (One(last) - 1)));
  }
  size_t Index(DeviceMask in_use, int last) const { return Row(in_use, last) * (units_ + 1); }
  void FillFarthest();
  int FillFrom(DeviceMask in_use, int d, std::vector<int64_t>& from);
  void Fill(DeviceMask in_use);

  const SearchProblem& problem_;
  Measure measure_;
  const int n_;
  const int units_;
  std::vector<size_t> first_row_;  // [in use]
  std::vector<int> farthest_;      // [in use]: the farthest boundary that these devices reach
  std::vector<int64_t> to_go_;
  std::vector<int> earliest_;     // [row]: to_go_ is infinite before this boundary
  std::vector<int> window_ends_;  // used by FillFrom
  std::vector<int64_t> window_costs_;
  uint64_t steps_ = 0;
};

}  // namespace trine::planner
