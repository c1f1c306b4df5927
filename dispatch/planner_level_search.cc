#include "dispatch/planner_level_search.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "dispatch/planner_ahead.h"

// Why the answer is exact. Where any device may follow any other and none must be used, a beginning
// that gets farther and uses no more of each open group can do whatever another does from there: of
// what the other places next, it leaves out the units it has already, and a segment without its
// first units, or gone altogether, keeps to every limit that held it. So labels meet where the set
// of devices in use is the same, farther ones take others' place, and a device goes as far as it
// can, unless it draws on a group in which others may follow: there every end is tried. Where some
// pairs are not allowed, or a device is required, a segment can't be left out: labels meet only at
// the same last device and boundary, and every end is tried.
//
// Either way a label is dropped that the devices left can't take to the end (planner_ahead.h).
// Where one pair of devices shares, what is kept can be taken there, and the first that is kept is.
namespace trine::planner {
namespace {

struct Label {
  int boundary = 0;
  int last = 0;
  GroupUse used{};
  Path path;
};

class LevelSearch {
 public:
  LevelSearch(const SumProblem& problem, LevelEffort& effort)
      : problem_(problem),
        chain_(*problem.chain),
        effort_(effort),
        farthest_only_(problem.may_follow.empty() && problem.required == 0),
        ahead_(problem),
        states_(static_cast<size_t>(chain_.All()) + 1) {}

  std::optional<Path> Run() {
    std::optional<Path> found = Search();
    effort_.steps += ahead_.steps();
    effort_.refused = std::min(effort_.refused, ahead_.refused());
    return found;
  }

 private:
  std::optional<Path> Search() {
    if (ahead_.Needed(chain_.All()) > 0) return std::nullopt;
    Insert(Label{}, 0);
    for (DeviceSet in_use = 0; in_use <= chain_.All(); ++in_use) {
      const std::vector<Label> labels = std::move(states_[in_use]);
      for (const Label& label : labels) {
        if (std::optional<Path> path = Extend(label, in_use); path.has_value()) return path;
        if (effort_.steps + ahead_.steps() <= effort_.max_steps) continue;
        effort_.exhausted = true;
        return std::nullopt;
      }
    }
    return std::nullopt;
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
    const int nearest = std::max(label.boundary + 1, ahead_.Needed(chain_.All() & ~in_use));
    for (int e = problem_.reach[d][label.boundary]; e >= nearest; --e) {
      ++effort_.steps;
      Label next = label;
      if (!chain_.cut[e] || !Draw(in_use, d, label.boundary, e, next.used)) continue;
      next.boundary = e;
      next.last = d;
      next.path = label.path.With(d, e);
      if (e == chain_.units && (problem_.required & ~in_use) == 0) return next.path;
      if (e < chain_.units && ahead_.MayEnd(in_use, e, next.used)) {
        if (auto path = ahead_.Finish(next.path, in_use, e); path.has_value()) return path;
        Insert(next, in_use);
      }
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

  bool Draw(DeviceSet in_use, int d, int begin, int end, GroupUse& used) {
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
  Ahead ahead_;
  std::vector<std::vector<Label>> states_;  // [in use]
};

}  // namespace

std::optional<Path> SearchLevel(const SumProblem& problem, LevelEffort& effort) {
  return LevelSearch(problem, effort).Run();
}

}  // namespace trine::planner
