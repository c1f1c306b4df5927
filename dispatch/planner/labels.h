// Keeps the beginnings of placements that a search has still to extend, without those that can't be
// the best because another one is better in every way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "dispatch/planner/bound.h"
#include "dispatch/planner/chain.h"

namespace trine::planner {

// The bounds of a search: of the cost, of the use of each counted group, and of the cost with
// prices. A problem may have any number of groups: each device has its memory, its time, a pool and
// a domain, also if only parts of units are on it. Placements overdraw few of them.
inline constexpr int kMostCounted = 24;
inline constexpr int kMostPriced = 16;
inline constexpr size_t kMostBounds = 1 + kMostCounted + kMostPriced;

// The beginning of a placement.
struct Label {
  std::array<int64_t, kMostBounds> sums{};  // [bound]; sums[0] is the cost
  int last = 0;                             // the device of its last segment
  Path path;

  int Boundary() const { return path.size == 0 ? 0 : path.end[path.size - 1]; }
};

// One label dominates another label if both have the same devices in use and the same boundary, the
// first one uses no more of any open group (ChainGroup::Open), and it costs less, whatever device
// is next. At equal cost it must also be earlier by the rule for ties: both have the same number of
// segments, and what follows is the same.
class Labels {
 public:
  // `groups`: the groups that count, each with the bound whose sums are its use.
  Labels(const SearchProblem& problem, std::vector<std::pair<size_t, const ChainGroup*>> groups);

  // Adds a label unless another one dominates it. Returns the steps that this takes.
  uint64_t Insert(const Label& label, DeviceMask in_use);
  // Removes the labels of a set of devices. Calls f(label) for each, until f returns
  // false. Returns false if it did.
  template <typename F>
  bool Take(DeviceMask in_use, const F& f) {
    const std::vector<std::vector<Label>> fronts = std::move(states_[in_use].fronts);
    for (const std::vector<Label>& front : fronts) {
      for (const Label& label : front) {
        if (!f(label)) return false;
      }
    }
    return true;
  }

 private:
  // The labels of one set of devices, and what comparing them takes.
  struct State {
    std::vector<std::vector<Label>> fronts;  // [boundary]
    std::vector<size_t> open;                // the bounds of open groups
    // [a * n + b]: the most that a segment after `a` costs more than one after `b`.
    std::vector<int64_t> handicaps;
  };

  State& StateOf(DeviceMask in_use);
  bool Dominates(const State& state, const Label& a, const Label& b) const;

  const SearchProblem& problem_;
  const Chain& chain_;
  const std::vector<std::pair<size_t, const ChainGroup*>> groups_;
  std::vector<State> states_;  // [in use]
};

}  // namespace trine::planner
