#include "dispatch/planner_level_search.h"

#include <algorithm>
#include <array>
#include <vector>

// Why the answer is exact. Where any device may follow any other and none must be used, a beginning
// that gets farther and uses no more of each open group can do whatever another does from there: of
// what the other places next, it leaves out the units it has already, and a segment without its
// first units, or gone altogether, keeps to every limit that held it. So labels meet where the set
// of devices in use is the same, farther ones take others' place, and a device goes as far as it
// can, unless it draws on a group in which others may follow: there every end is tried. Where some
// pairs are not allowed, or a device is required, a segment can't be left out: labels meet only at
// the same last device and boundary, and every end is tried.
//
// Either way a label is dropped that the devices left can't take to the end, were there no groups.
namespace trine::planner {
namespace {

struct Label {
  int boundary = 0;
  int last = 0;
  std::array<int64_t, kMostGroups> used{};
  Path path;
};

class LevelSearch {
 public:
  LevelSearch(const SumProblem& problem, LevelEffort& effort)
      : problem_(problem),
        chain_(*problem.chain),
        effort_(effort),
        farthest_only_(problem.may_follow.empty() && problem.required == 0),
        states_(static_cast<size_t>(chain_.All()) + 1) {
    FillNeeded();
  }

  std::optional<Path> Run() {
    Insert(Label{}, 0);
    for (DeviceSet in_use = 0; in_use <= chain_.All(); ++in_use) {
      const std::vector<Label> labels = std::move(states_[in_use]);
      for (const Label& label : labels) {
        if (std::optional<Path> path = Extend(label, in_use); path.has_value()) return path;
        if (effort_.steps <= effort_.max_steps) continue;
        effort_.exhausted = true;
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

 private:
  // needed_[set]: the first boundary from which the set's devices can place the rest, groups aside.
  void FillNeeded() {
    needed_.assign(static_cast<size_t>(chain_.All()) + 1, chain_.units);
    std::vector<std::vector<int>> earliest(chain_.devices.size());
    for (int d = 0; d < chain_.n(); ++d) {
      std::vector<int>& first = earliest[d];
      first.resize(static_cast<size_t>(chain_.units) + 1);
      int b = 0;
      for (int e = 0; e <= chain_.units; ++e) {
        while (b < e && (!chain_.cut[b] || problem_.reach[d][b] < e)) ++b;
        first[e] = b;
      }
    }
    for (DeviceSet set = 1; set <= chain_.All(); ++set) {
      for (int d = 0; d < chain_.n(); ++d) {
        if ((set & One(d)) == 0) continue;
        needed_[set] = std::min(needed_[set], earliest[d][needed_[set & ~One(d)]]);
      }
    }
  }

  std::optional<Path> Extend(const Label& label, DeviceSet in_use) {
    for (int d = 0; d < chain_.n(); ++d) {
      if (!chain_.MayFollow(in_use, d)) continue;
      if (in_use != 0 && !problem_.may_follow.empty() && !problem_.may_follow[label.last][d]) {
        continue;
      }
      if (std::optional<Path> path = ExtendOver(label, in_use | One(d), d); path.has_value()) {
        return path;
      }
    }
    return std::nullopt;
  }

  // Ends from the farthest on, so that a way to the last unit is found first.
  std::optional<Path> ExtendOver(const Label& label, DeviceSet in_use, int d) {
    const bool one_end = farthest_only_ && !OpensAny(in_use, d);
    const int nearest = std::max(label.boundary + 1, needed_[chain_.All() & ~in_use]);
    for (int e = problem_.reach[d][label.boundary]; e >= nearest; --e) {
      ++effort_.steps;
      Label next = label;
      if (!chain_.cut[e] || !Draw(in_use, d, label.boundary, e, next.used)) continue;
      next.boundary = e;
      next.last = d;
      next.path = label.path.With(d, e);
      if (e == chain_.units && (problem_.required & ~in_use) == 0) return next.path;
      if (e < chain_.units) Insert(next, in_use);
      if (one_end) break;
    }
    return std::nullopt;
  }

  // The device draws on a group in which others may follow.
  bool OpensAny(DeviceSet in_use, int d) const {
    for (const ChainGroup& group : problem_.groups) {
      if ((group.members & One(d)) != 0 && group.Open(in_use)) return true;
    }
    return false;
  }

  bool Draw(DeviceSet in_use, int d, int begin, int end, std::array<int64_t, kMostGroups>& used) {
    for (size_t g = 0; g < problem_.groups.size(); ++g) {
      const ChainGroup& group = problem_.groups[g];
      if ((group.members & One(d)) == 0) continue;
      used[g] += group.Use(d, begin, end);
      if (used[g] > group.capacity) {
        if (group.held_to_level) effort_.refused = std::min(effort_.refused, used[g]);
        return false;
      }
      if (!group.Open(in_use)) used[g] = 0;
    }
    return true;
  }

  bool Dominates(const Label& a, const Label& b) const {
    if (farthest_only_ ? a.boundary < b.boundary : a.boundary != b.boundary || a.last != b.last) {
      return false;
    }
    for (size_t g = 0; g < problem_.groups.size(); ++g) {
      if (a.used[g] > b.used[g]) return false;
    }
    return true;
  }

  void Insert(const Label& label, DeviceSet in_use) {
    std::vector<Label>& labels = states_[in_use];
    effort_.steps += labels.size();
    for (const Label& other : labels) {
      if (Dominates(other, label)) return;
    }
    std::erase_if(labels, [&](const Label& other) { return Dominates(label, other); });
    labels.push_back(label);
  }

  const SumProblem& problem_;
  const Chain& chain_;
  LevelEffort& effort_;
  const bool farthest_only_;
  std::vector<int> needed_;
  std::vector<std::vector<Label>> states_;  // [in use]
};

}  // namespace

std::optional<Path> SearchLevel(const SumProblem& problem, LevelEffort& effort) {
  return LevelSearch(problem, effort).Run();
}

}  // namespace trine::planner
