// The placement of least total time where devices share nothing: each has its own limits, and no
// group binds. Solved for every beginning at once, it bounds from below what any beginning of a
// placement can still become where devices do share.
#ifndef TRINE_DISPATCH_PLANNER_RELAXED_H_
#define TRINE_DISPATCH_PLANNER_RELAXED_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dispatch/planner_chain.h"

namespace trine::planner {

// Time and number of segments in one number: less time first, then fewer segments.
inline constexpr int64_t kCostPerNs = 16;
static_assert(kMostDevices < kCostPerNs);

struct SumProblem {
  const Chain* chain = nullptr;
  Reach reach;
  std::vector<ChainGroup> groups;
  std::vector<std::vector<bool>> may_follow;  // [from][to]; empty: any
  DeviceSet required = 0;                     // devices that must have a segment
  std::vector<Prefix> cost;                   // [device]: of units
  std::vector<int64_t> first;                 // [device]: of a segment, whatever is in it

  int64_t Next(int from, int to) const {
    if (!may_follow.empty() && !may_follow[from][to]) return kInfinite;
    return chain->transfer[from][to] * kCostPerNs + first[to];
  }
  int64_t Run(int d, int begin, int end) const { return cost[d][end] - cost[d][begin]; }
};

// With the chain's times as costs, and no limits yet but the devices' own.
SumProblem MakeSumProblem(const Chain& chain, DeviceSet required);

// Over sets of devices in use, the last of them, and boundaries: the devices that follow don't
// depend on the order of those before. Per set and device the best end of a segment, for all its
// beginnings, is the least of a window that slides, since a run's cost is a difference of prefix
// sums: O(2^n n^2 units) in all.
class Relaxed {
 public:
  explicit Relaxed(const SumProblem& problem);

  // The least cost of placing units from `boundary` on over devices outside `in_use`, after a
  // segment on `last`, one of `in_use`; kInfinite or more when there is no way, or none to there.
  int64_t ToGo(DeviceSet in_use, int last, int boundary) const {
    return to_go_[Index(in_use, last) + static_cast<size_t>(boundary)];
  }
  int64_t Best() const { return ToGo(0, 0, 0); }
  // Before this boundary ToGo is infinite.
  int Earliest(DeviceSet in_use, int last) const { return earliest_[Row(in_use, last)]; }
  // The first by the rule for ties among those that cost Best(), which must be finite.
  Path BestPath() const;
  uint64_t steps() const { return steps_; }

 private:
  // Sets have a row for each of their devices, and the empty one has one.
  size_t Row(DeviceSet in_use, int last) const {
    return first_row_[in_use] + static_cast<size_t>(std::popcount(in_use & (One(last) - 1)));
  }
  size_t Index(DeviceSet in_use, int last) const { return Row(in_use, last) * (units_ + 1); }
  void FillFarthest();
  int FillFrom(DeviceSet in_use, int d, std::vector<int64_t>& from);
  void Fill(DeviceSet in_use);
  int64_t StepCost(DeviceSet in_use, int last, int d) const;
  std::vector<bool> Ends(DeviceSet in_use, int last, int d, const std::vector<bool>& begins) const;
  bool OnBest(DeviceSet in_use, int last, int d, int begin, int end) const;

  const SumProblem& problem_;
  const int n_;
  const int units_;
  std::vector<size_t> first_row_;  // [in use]
  std::vector<int> farthest_;      // [in use]: no beginning on these devices gets beyond it
  std::vector<int64_t> to_go_;
  std::vector<int> earliest_;     // [row]: before this boundary there is no way
  std::vector<int> window_ends_;  // FillFrom's own
  std::vector<int64_t> window_costs_;
  uint64_t steps_ = 0;
};

}  // namespace trine::planner

#endif  // TRINE_DISPATCH_PLANNER_RELAXED_H_
