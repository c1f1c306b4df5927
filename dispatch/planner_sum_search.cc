#include "dispatch/planner_sum_search.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "dispatch/planner_ahead.h"
#include "dispatch/planner_price.h"

// Why the answer is exact. A label is a beginning of a placement: its cost, and how much it uses of
// each open group (ChainGroup::Open). Labels meet where the devices in use, the last of them and
// the boundary are the same; from there on the same continuations are open to them, at the same
// cost, except that a group may hold one's and not the other's. So a label that costs more and uses
// no less of anything than another can be dropped, and at equal cost one that is also later by the
// rule for ties. A label is dropped too when its cost and what Relaxed says is still to come exceed
// a placement that is known: no continuation can do better than without groups. Nothing else is
// dropped.
namespace trine::planner {
namespace {

struct Label {
  int64_t cost = 0;
  int64_t priced = 0;  // what it costs where use of groups has a price
  GroupUse used{};
  Path path;
};

class LabelSearch {
 public:
  LabelSearch(const SumProblem& problem, const Relaxed& relaxed, const PricedBound& priced,
              Found best, uint64_t max_steps)
      : problem_(problem),
        relaxed_(relaxed),
        priced_(priced),
        ahead_(problem),
        n_(problem.chain->n()),
        units_(problem.chain->units),
        best_(std::move(best)),
        max_steps_(max_steps),
        states_((static_cast<size_t>(problem.chain->All()) + 1) * n_) {}

  Found Run() {
    Search();
    best_.steps += ahead_.steps();
    return best_;
  }

 private:
  void Search() {
    Extend(Label{}, 0, 0, 0);
    for (DeviceSet in_use = 1; in_use <= problem_.chain->All(); ++in_use) {
      for (int last = 0; last < n_; ++last) {
        std::vector<std::vector<Label>> state = std::move(states_[in_use * n_ + last]);
        for (int b = 0; b < static_cast<int>(state.size()); ++b) {
          for (const Label& label : state[b]) {
            if (best_.steps + ahead_.steps() > max_steps_) {
              best_.exact = false;
              return;
            }
            Extend(label, in_use, last, b);
          }
        }
      }
    }
  }

  void Extend(const Label& label, DeviceSet in_use, int last, int begin) {
    for (int d = 0; d < n_; ++d) {
      if (!problem_.chain->MayFollow(in_use, d)) continue;
      ExtendOver(label, in_use | One(d), last, d, begin);
    }
  }

  void ExtendOver(const Label& label, DeviceSet in_use, int last, int d, int begin) {
    const bool first = label.path.size == 0;
    const int64_t step = first ? problem_.first[d] : problem_.Next(last, d);
    if (step >= kInfinite) return;
    const SumProblem& priced = *priced_.problem;
    const int64_t priced_step = first ? priced.first[d] : priced.Next(last, d);
    Label next;
    const int first_end = std::max(begin + 1, relaxed_.Earliest(in_use, d));
    for (int e = first_end; e <= problem_.reach[d][begin]; ++e) {
      ++best_.steps;
      next.cost = label.cost + step + problem_.Run(d, begin, e);
      if (next.cost > best_.cost) return;
      if (next.cost + relaxed_.ToGo(in_use, d, e) > best_.cost) continue;
      next.priced = label.priced + priced_step + priced.Run(d, begin, e);
      if (priced_.Bound(next.priced, in_use, d, e) > best_.cost) continue;
      // A longer run uses no less.
      if (!Draw(label, in_use, d, begin, e, next.used)) return;
      next.path = label.path.With(d, e);
      if (e == units_) {
        Offer(next);
      } else if (ahead_.MayEnd(in_use, e, next.used)) {
        Insert(next, in_use, d, e);
      }
    }
  }

  bool Draw(const Label& label, DeviceSet in_use, int d, int begin, int end,
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

  void Offer(const Label& label) {
    if (std::tie(label.cost, label.path) >= std::tie(best_.cost, best_.path)) return;
    best_.cost = label.cost;
    best_.path = label.path;
  }

  bool UsesNoMore(const Label& a, const Label& b) const {
    for (size_t g = 0; g < problem_.groups.size(); ++g) {
      if (a.used[g] > b.used[g]) return false;
    }
    return true;
  }

  bool Dominates(const Label& a, const Label& b) const {
    if (a.cost > b.cost || !UsesNoMore(a, b)) return false;
    return a.cost < b.cost || a.path <= b.path;
  }

  void Insert(const Label& label, DeviceSet in_use, int last, int boundary) {
    std::vector<std::vector<Label>>& state = states_[in_use * n_ + last];
    if (state.empty()) state.resize(static_cast<size_t>(units_));
    std::vector<Label>& labels = state[boundary];
    best_.steps += labels.size();
    for (const Label& other : labels) {
      if (Dominates(other, label)) return;
    }
    std::erase_if(labels, [&](const Label& other) { return Dominates(label, other); });
    labels.push_back(label);
  }

  const SumProblem& problem_;
  const Relaxed& relaxed_;
  const PricedBound& priced_;
  Ahead ahead_;
  const int n_;
  const int units_;
  Found best_;
  const uint64_t max_steps_;
  std::vector<std::vector<std::vector<Label>>> states_;  // [in use, last][boundary]
};

}  // namespace

Found SearchSum(const SumProblem& problem, const std::vector<Path>& known, uint64_t max_steps) {
  Found best;
  for (const Path& path : known) {
    const int64_t cost = CostOf(problem, path);
    if (std::tie(cost, path) >= std::tie(best.cost, best.path)) continue;
    best.cost = cost;
    best.path = path;
  }
  const Relaxed relaxed(problem);
  best.steps = relaxed.steps();
  if (relaxed.Best() > best.cost || relaxed.Best() >= kInfinite) return best;
  const Path path = relaxed.BestPath();
  if (Overdrawing(problem, path) == 0) {
    // First by the rule even among those that overdraw.
    if (std::pair(relaxed.Best(), path) < std::pair(best.cost, best.path)) {
      best.cost = relaxed.Best();
      best.path = path;
    }
    return best;
  }
  GuessShares(problem, path, best);
  if (max_steps == 0) {
    best.exact = false;
    return best;
  }
  const PricedBound priced = PriceGroups(problem, path, best);
  return LabelSearch(problem, relaxed, priced, best, max_steps).Run();
}

}  // namespace trine::planner
