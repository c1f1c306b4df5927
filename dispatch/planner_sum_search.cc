#include "dispatch/planner_sum_search.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

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
  std::array<int64_t, kMostGroups> used{};
  Path path;
};

class LabelSearch {
 public:
  LabelSearch(const SumProblem& problem, const Relaxed& relaxed, Found best, uint64_t max_steps)
      : problem_(problem),
        relaxed_(relaxed),
        n_(problem.chain->n()),
        units_(problem.chain->units),
        best_(std::move(best)),
        max_steps_(max_steps),
        states_((static_cast<size_t>(problem.chain->All()) + 1) * n_) {}

  Found Run() {
    Extend(Label{}, 0, 0, 0);
    for (DeviceSet in_use = 1; in_use <= problem_.chain->All(); ++in_use) {
      for (int last = 0; last < n_; ++last) {
        std::vector<std::vector<Label>> state = std::move(states_[in_use * n_ + last]);
        for (int b = 0; b < static_cast<int>(state.size()); ++b) {
          for (const Label& label : state[b]) {
            if (best_.steps > max_steps_) return GiveUp();
            Extend(label, in_use, last, b);
          }
        }
      }
    }
    return best_;
  }

 private:
  Found GiveUp() {
    best_.exact = false;
    return best_;
  }

  void Extend(const Label& label, DeviceSet in_use, int last, int begin) {
    for (int d = 0; d < n_; ++d) {
      if (!problem_.chain->MayFollow(in_use, d)) continue;
      const int64_t step = in_use == 0 ? problem_.First(d) : problem_.Next(last, d);
      if (step >= kInfinite) continue;
      ExtendOver(label, in_use | One(d), d, begin, label.cost + step);
    }
  }

  void ExtendOver(const Label& label, DeviceSet in_use, int d, int begin, int64_t cost) {
    for (int e = begin + 1; e <= problem_.reach[d][begin]; ++e) {
      ++best_.steps;
      const int64_t so_far = cost + problem_.Run(d, begin, e);
      if (so_far > best_.cost) return;
      if (!problem_.chain->cut[e] || so_far + relaxed_.ToGo(in_use, d, e) > best_.cost) continue;
      Label next;
      next.cost = so_far;
      // A longer run uses no less.
      if (!Draw(label, in_use, d, begin, e, next.used)) return;
      next.path = label.path.With(d, e);
      if (e == units_) {
        Offer(next);
      } else {
        Insert(next, in_use, d, e);
      }
    }
  }

  bool Draw(const Label& label, DeviceSet in_use, int d, int begin, int end,
            std::array<int64_t, kMostGroups>& used) const {
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
  const int n_;
  const int units_;
  Found best_;
  const uint64_t max_steps_;
  std::vector<std::vector<std::vector<Label>>> states_;  // [in use, last][boundary]
};

// Gives each member of an overdrawn group a share of it in proportion to what the path has it use,
// or to one of them all that it uses.
void ShareOut(const Chain& chain, const ChainGroup& group, const Path& path, int favoured,
              std::vector<std::vector<int64_t>>& shares, size_t g) {
  std::vector<int64_t> use(chain.devices.size());
  int64_t total = 0;
  int begin = 0;
  for (int i = 0; i < path.size; ++i) {
    const int d = path.device[i];
    if ((group.members & One(d)) != 0) total += use[d] = group.Use(d, begin, path.end[i]);
    begin = path.end[i];
  }
  if (total <= group.capacity) return;
  for (int d = 0; d < chain.n(); ++d) {
    if ((group.members & One(d)) == 0) continue;
    const double ratio = static_cast<double>(use[d]) / static_cast<double>(total);
    int64_t share = static_cast<int64_t>(ratio * static_cast<double>(group.capacity));
    if (favoured >= 0 && use[favoured] > 0) {
      share = d == favoured ? use[d] : std::max<int64_t>(group.capacity - use[favoured], 0);
    }
    shares[g][d] = std::min(shares[g][d], share);
  }
}

// A placement that keeps to the groups, from relaxed ones in which members have fixed shares. A
// good one makes the search short; none, only longer.
void Improvise(const SumProblem& problem, const Path& start, int favoured, Found& best) {
  const Chain& chain = *problem.chain;
  std::vector<std::vector<int64_t>> shares(problem.groups.size(),
                                           std::vector<int64_t>(chain.devices.size(), kInfinite));
  Path path = start;
  for (int round = 0; round < 4; ++round) {
    for (size_t g = 0; g < problem.groups.size(); ++g) {
      ShareOut(chain, problem.groups[g], path, favoured, shares, g);
    }
    SumProblem shared = problem;
    shared.reach = MakeReach(chain, [&](int d, int b, int e) {
      if (e > problem.reach[d][b]) return false;
      for (size_t g = 0; g < shares.size(); ++g) {
        const ChainGroup& group = problem.groups[g];
        if ((group.members & One(d)) != 0 && group.Use(d, b, e) > shares[g][d]) return false;
      }
      return true;
    });
    const Relaxed relaxed(shared);
    best.steps += relaxed.steps();
    if (relaxed.Best() >= kInfinite) return;
    path = relaxed.BestPath();
    if (Overdrawing(problem, path) != 0) continue;
    if (relaxed.Best() < best.cost) {
      best.cost = relaxed.Best();
      best.path = path;
    }
    return;
  }
}

}  // namespace

int64_t CostOf(const SumProblem& problem, const Path& path) {
  int64_t cost = 0;
  int begin = 0;
  for (int i = 0; i < path.size; ++i) {
    const int d = path.device[i];
    const int64_t step = i == 0 ? problem.First(d) : problem.Next(path.device[i - 1], d);
    if (step >= kInfinite) return kInfinite;
    cost += step + problem.Run(d, begin, path.end[i]);
    begin = path.end[i];
  }
  return cost;
}

DeviceSet Overdrawing(const SumProblem& problem, const Path& path) {
  DeviceSet overdrawing = 0;
  for (const ChainGroup& group : problem.groups) {
    int64_t used = 0;
    DeviceSet users = 0;
    int begin = 0;
    for (int i = 0; i < path.size; ++i) {
      const int d = path.device[i];
      if ((group.members & One(d)) != 0) {
        used += group.Use(d, begin, path.end[i]);
        users |= One(d);
      }
      begin = path.end[i];
    }
    if (used > group.capacity) overdrawing |= users;
  }
  return overdrawing;
}

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
  const DeviceSet overdrawing = Overdrawing(problem, path);
  if (overdrawing == 0) {
    // First by the rule even among those that overdraw.
    if (std::pair(relaxed.Best(), path) < std::pair(best.cost, best.path)) {
      best.cost = relaxed.Best();
      best.path = path;
    }
    return best;
  }
  Improvise(problem, path, -1, best);
  for (int d = 0; d < problem.chain->n(); ++d) {
    if ((overdrawing & One(d)) != 0) Improvise(problem, path, d, best);
  }
  return LabelSearch(problem, relaxed, best, max_steps).Run();
}

}  // namespace trine::planner
