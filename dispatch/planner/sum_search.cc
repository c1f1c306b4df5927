#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "dispatch/planner/ahead.h"
#include "dispatch/planner/guess.h"
#include "dispatch/planner/searches.h"

// The answer is exact, because only beginnings that can't be the best are dropped.
//
// A label is the beginning of a placement: its cost, and how much it uses of each open group
// (ChainGroup::Open). Labels are compared if they have the same devices in use and the same
// boundary. Then both have the same continuations, with two exceptions: a group may have room for a
// continuation of only one of them, and the cost of the next transfer may differ, because their
// last devices may differ. So a label is dropped if another one uses no more of any group and costs
// less, whatever device is next. At equal cost, it is dropped if the other one is also earlier by
// the rule for ties: both have the same number of segments, and what follows is the same.
//
// A label is also dropped if its cost and the rest that Relaxed predicts exceed a known placement,
// or if no continuation of it keeps to the groups (ahead.h). A segment is not tried if moving one
// unit over the cut before it would be better by itself (FirstEnd, LastEnd): the best placement has
// no such cut.
namespace trine::planner {
namespace {

struct SumLabel {
  int64_t cost = 0;
  std::array<int64_t, kPrices> priced{};  // the cost if using groups has a price
  int last = 0;
  GroupUse used{};
  Path path;
};

// The values that decide most comparisons of labels.
struct Key {
  int64_t used = 0;  // of the first group
  int64_t cost = 0;
  int last = 0;
  size_t label = 0;  // index into Front::labels
};

bool UsesLess(const Key& a, const Key& b) { return a.used < b.used; }

// The labels of one set of devices at one boundary.
struct Front {
  std::vector<Key> keys;         // not dominated by others, in the order of UsesLess
  std::vector<SumLabel> labels;  // the labels of `keys`, and others that were dominated later
};

// The differences that the last device of a label makes for the cost of the next transfer.
// [a * n + b]: the most that a transfer after `a` costs more than one after `b`. Empty: not filled.
using Handicaps = std::vector<int64_t>;

class LabelSearch {
 public:
  LabelSearch(const SumProblem& problem, const Relaxed& relaxed, const PricedBounds& priced,
              Found best, uint64_t max_steps)
      : problem_(problem),
        relaxed_(relaxed),
        priced_(priced),
        ahead_(problem),
        n_(problem.chain->n()),
        units_(problem.chain->units),
        best_(std::move(best)),
        max_steps_(max_steps),
        handicaps_(static_cast<size_t>(problem.chain->All()) + 1),
        states_(handicaps_.size()) {}

  Found Run() {
    Search();
    best_.steps += ahead_.steps();
    return best_;
  }

 private:
  void Search() {
    Extend(SumLabel{}, 0, 0);
    for (DeviceMask in_use = 1; in_use <= problem_.chain->All(); ++in_use) {
      const std::vector<Front> state = std::move(states_[in_use]);
      for (int b = 0; b < static_cast<int>(state.size()); ++b) {
        for (const Key& key : state[b].keys) {
          if (best_.steps + ahead_.steps() > max_steps_) {
            best_.exact = false;
            return;
          }
          Extend(state[b].labels[key.label], in_use, b);
        }
      }
    }
  }

  void Extend(const SumLabel& label, DeviceMask in_use, int begin) {
    for (int d = 0; d < n_; ++d) {
      if (!problem_.chain->MayFollow(in_use, d)) continue;
      ExtendOver(label, in_use | One(d), d, begin);
    }
  }

  void ExtendOver(const SumLabel& label, DeviceMask in_use, int d, int begin) {
    const bool first = label.path.size == 0;
    const int64_t step = first ? problem_.first[d] : problem_.Next(label.last, d);
    if (step >= kInfinite) return;
    SumLabel next;
    next.last = d;
    const int first_end = std::max(FirstEnd(label, d, begin), relaxed_.Earliest(in_use, d));
    const int last_end = LastEnd(label, d, begin);
    for (int e = first_end; e <= last_end; ++e) {
      ++best_.steps;
      next.cost = label.cost + step + problem_.Run(d, begin, e);
      if (next.cost > best_.cost) return;
      if (next.cost + relaxed_.ToGo(in_use, d, e) > best_.cost) continue;
      if (!WorthItsPrice(label, in_use, d, begin, e, next)) continue;
      // A longer run does not use less.
      if (!Draw(label, in_use, d, begin, e, next.used)) return;
      next.path = label.path.With(d, e);
      if (e == units_) {
        best_.Offer(next.cost, next.path);
      } else {
        Insert(next, in_use, e);
      }
    }
  }

  bool SharesNothing(int d) const {
    return std::none_of(problem_.groups.begin(), problem_.groups.end(),
                        [d](const ChainGroup& g) { return (g.members & One(d)) != 0; });
  }

  static int LastBegin(const Path& path) { return path.size < 2 ? 0 : path.end[path.size - 2]; }

  // Returns the nearest end of a run on `d` that is worth trying. If the unit before the run costs
  // no more on `d`, it could be on `d` too, and the earlier cut would be better; unless `d` has no
  // room for the unit, or it is the only unit of the device before.
  int FirstEnd(const SumLabel& label, int d, int begin) const {
    const int earlier = begin - 1;
    if (label.path.size == 0 || earlier <= LastBegin(label.path) || !SharesNothing(d) ||
        problem_.Run(d, earlier, begin) > problem_.Run(label.last, earlier, begin)) {
      return begin + 1;
    }
    return std::max(begin, problem_.reach[d][earlier]) + 1;
  }

  // Returns the farthest end of a run on `d` that is worth trying. If the run's first unit costs
  // less on the device before, and that has room, the unit belongs there, unless it is the whole
  // run.
  int LastEnd(const SumLabel& label, int d, int begin) const {
    const int later = begin + 1;
    const int farthest = problem_.reach[d][begin];
    if (label.path.size == 0 || farthest <= later || !SharesNothing(label.last) ||
        problem_.reach[label.last][LastBegin(label.path)] < later ||
        problem_.Run(label.last, begin, later) >= problem_.Run(d, begin, later)) {
      return farthest;
    }
    return later;
  }

  bool WorthItsPrice(const SumLabel& label, DeviceMask in_use, int d, int begin, int end,
                     SumLabel& next) const {
    for (size_t i = 0; i < kPrices; ++i) {
      const SumProblem& priced = *priced_[i].problem;
      const int64_t step = label.path.size == 0 ? priced.first[d] : priced.Next(label.last, d);
      next.priced[i] = label.priced[i] + step + priced.Run(d, begin, end);
      if (priced_[i].Bound(next.priced[i], in_use, d, end) > best_.cost) return false;
    }
    return true;
  }

  bool Draw(const SumLabel& label, DeviceMask in_use, int d, int begin, int end,
            GroupUse& used) const {
    for (size_t g = 0; g < problem_.groups.size(); ++g) {
      const ChainGroup& group = problem_.groups[g];
      used[g] = label.used[g];
      if ((group.members & One(d)) == 0) continue;
      used[g] += group.Use(d, begin, end);
      if (used[g] > group.capacity) return false;
      if (!group.Open(in_use)) used[g] = 0;
    }
    return true;
  }

  bool UsesNoMore(const SumLabel& a, const SumLabel& b) const {
    for (size_t g = 0; g < problem_.groups.size(); ++g) {
      if (a.used[g] > b.used[g]) return false;
    }
    return true;
  }

  const Handicaps& HandicapsOf(DeviceMask in_use) {
    Handicaps& handicaps = handicaps_[in_use];
    if (!handicaps.empty()) return handicaps;
    handicaps.assign(static_cast<size_t>(n_) * n_, -kInfinite);
    for (int a = 0; a < n_; ++a) {
      for (int b = 0; b < n_; ++b) {
        if ((in_use & One(a)) == 0 || (in_use & One(b)) == 0) continue;
        int64_t& most = handicaps[a * n_ + b];
        for (int d = 0; d < n_; ++d) {
          if (!problem_.chain->MayFollow(in_use, d)) continue;
          const int64_t after_b = problem_.Next(b, d);
          if (after_b < kInfinite) most = std::max(most, problem_.Next(a, d) - after_b);
        }
      }
    }
    return handicaps;
  }

  // Returns whether `a` replaces `b`. Looks at the labels only if the keys don't decide.
  bool Dominates(const Key& a, const SumLabel& a_label, const Key& b, const SumLabel& b_label,
                 const Handicaps& handicaps) const {
    const int64_t cost = a.cost + handicaps[a.last * n_ + b.last];
    if (a.used > b.used || cost > b.cost) return false;
    if (problem_.groups.size() > 1 && !UsesNoMore(a_label, b_label)) return false;
    return cost < b.cost || a_label.path <= b_label.path;
  }

  // Inserts a label unless another one dominates it. A label that uses a little less mostly costs a
  // little more, so going down from the new label's place in the order mostly finds at once one
  // that dominates it.
  void Insert(const SumLabel& label, DeviceMask in_use, int boundary) {
    std::vector<Front>& state = states_[in_use];
    if (state.empty()) state.resize(static_cast<size_t>(units_));
    Front& front = state[boundary];
    std::vector<Key>& keys = front.keys;
    const Handicaps& handicaps = HandicapsOf(in_use);
    Key key{label.used[0], label.cost, label.last, 0};
    const auto after = std::upper_bound(keys.begin(), keys.end(), key, UsesLess);
    for (auto other = after; other != keys.begin();) {
      ++best_.steps;
      --other;
      if (Dominates(*other, front.labels[other->label], key, label, handicaps)) return;
    }
    if (!ahead_.MayEnd(in_use, boundary, label.used)) return;
    const auto place = std::lower_bound(keys.begin(), after, key, UsesLess);
    key.label = front.labels.size();
    const auto at = place - keys.begin();
    const auto dominated = [&](const Key& other) {
      ++best_.steps;
      return Dominates(key, label, other, front.labels[other.label], handicaps);
    };
    keys.erase(std::remove_if(place, keys.end(), dominated), keys.end());
    keys.insert(keys.begin() + at, key);
    front.labels.push_back(label);
  }

  const SumProblem& problem_;
  const Relaxed& relaxed_;
  const PricedBounds& priced_;
  Ahead ahead_;
  const int n_;
  const int units_;
  Found best_;
  const uint64_t max_steps_;
  std::vector<Handicaps> handicaps_;        // [in use]
  std::vector<std::vector<Front>> states_;  // [in use][boundary]
};

}  // namespace

Found SearchSum(const SumProblem& problem, const std::vector<Path>& known, uint64_t max_steps) {
  Found best;
  for (const Path& path : known) best.Offer(CostOf(problem, path), path);
  const Relaxed relaxed(problem);
  best.steps = relaxed.steps();
  if (relaxed.Best() > best.cost || relaxed.Best() >= kInfinite) return best;
  const Path path = relaxed.BestPath();
  if (Overdrawing(problem, path) == 0) {
    // The path is first by the rule for ties, even among placements that overdraw.
    best.Offer(relaxed.Best(), path);
    return best;
  }
  GuessShares(problem, path, best);
  if (max_steps == 0) {
    best.exact = false;
    return best;
  }
  if (!best.ok()) {
    // A search without costs finds out sooner whether any placement fits.
    LevelEffort effort;
    effort.max_steps = max_steps;
    const std::optional<Path> any = SearchLevel(problem, effort);
    best.steps += effort.steps;
    best.exact = !effort.exhausted;
    if (!any.has_value()) return best;
    best.Offer(CostOf(problem, *any), *any);
  }
  const PricedBounds priced = PriceGroups(problem, path, best);
  return LabelSearch(problem, relaxed, priced, best, max_steps).Run();
}

}  // namespace trine::planner
