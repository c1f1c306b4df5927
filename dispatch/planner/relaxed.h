// Finds the placement with the least total time under relaxed rules: each device keeps to its own
// limits, but memory pools and bandwidth domains limit nothing. A placement under the real rules
// can't take less time. So the result is a lower bound, by which a search drops hopeless beginnings
// of placements. Computes the bound for every beginning at once.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dispatch/planner/chain.h"

namespace trine::planner {

// The cost of a placement is this times its ns, plus its number of segments. So costs compare time
// first, then the number of segments.
inline constexpr int64_t kCostPerNs = 16;
static_assert(kMostDevices < kCostPerNs);

struct SumProblem {
  const Chain* chain = nullptr;
  Reach reach;
  std::vector<ChainGroup> groups;
  std::vector<std::vector<bool>> may_follow;  // [from][to]: `to` may follow; empty: any may
  DeviceMask required = 0;                    // devices that must have a segment
  std::vector<Prefix> cost;                   // [device]: prefix sums of the costs of units
  std::vector<int64_t> first;                 // [device]: the cost of a segment besides its units

  // Returns the cost of beginning a segment on `to` after one on `from`.
  int64_t Next(int from, int to) const {
    if (!may_follow.empty() && !may_follow[from][to]) return kInfinite;
    return chain->transfer[from][to] * kCostPerNs + first[to];
  }
  int64_t Run(int d, int begin, int end) const { return cost[d][end] - cost[d][begin]; }
};

// Makes the problem whose costs are the chain's times. Devices and pools have limits in it,
// bandwidth domains have none.
SumProblem MakeSumProblem(const Chain& chain, DeviceMask required);

// Computes ToGo for each set of devices in use, each last device and each boundary. The order of
// the devices before the last does not matter, because what follows does not depend on it. The cost
// of a run is a difference of two prefix sums. So one sliding window over the ends of a segment
// finds the best end for each of its beginnings, and everything takes O(2^n n^2 units) steps.
class Relaxed {
 public:
  explicit Relaxed(const SumProblem& problem);

  // Returns the least cost of the units from `boundary` to the end. They go to devices outside
  // `in_use`, after a segment on `last`, which is in `in_use`. Returns kInfinite or more if that is
  // impossible, or if the devices in use can't reach the boundary.
  int64_t ToGo(DeviceMask in_use, int last, int boundary) const {
    return to_go_[Index(in_use, last) + static_cast<size_t>(boundary)];
  }
  // Returns the cost of the best placement of all units.
  int64_t Best() const { return ToGo(0, 0, 0); }
  // Returns a boundary before which ToGo is infinite.
  int Earliest(DeviceMask in_use, int last) const { return earliest_[Row(in_use, last)]; }
  // Returns the placement of cost Best() that comes first by the rule for ties (Path in chain.h).
  // REQUIRES: Best() is finite.
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
  int64_t StepCost(DeviceMask in_use, int last, int d) const;
  std::vector<bool> Ends(DeviceMask in_use, int last, int d, const std::vector<bool>& begins) const;
  bool OnBest(DeviceMask in_use, int last, int d, int begin, int end) const;

  const SumProblem& problem_;
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
