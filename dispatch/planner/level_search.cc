#include <algorithm>
#include <utility>
#include <vector>

#include "dispatch/planner/ahead.h"
#include "dispatch/planner/searches.h"

// The answer is exact, for the following reason. First take problems in which any device may follow
// any other and none is required. Compare two beginnings of placements (labels), A and B, that use
// the same set of devices. A gets farther than B and uses no more of each open group. Then A can do
// whatever B does next: A only leaves out the units that it already has. A segment that loses its
// first units, or all of them, still keeps to every limit. So A replaces B, and a device goes as
// far as it can. Only a device that uses a group in which others may follow tries every end.
//
// In other problems some pairs of devices are not allowed, or a device is required, so a segment
// can't be left out. There, labels are compared only if their last device and their boundary are
// the same, and every end is tried.
//
// In both cases, a label is dropped if the unused devices can't take it to the end (ahead.h). If
// only one pair of devices shares a group, every label that is kept can be finished, and the first
// one is.
namespace trine::planner {
namespace {

struct LevelLabel {
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
    Insert(LevelLabel{}, 0);
    for (DeviceMask in_use = 0; in_use <= chain_.All(); ++in_use) {
      const std::vector<LevelLabel> labels = std::move(states_[in_use]);
      for (const LevelLabel& label : labels) {
        if (std::optional<Path> path = Extend(label, in_use); path.has_value()) return path;
        if (effort_.steps + ahead_.steps() <= effort_.max_steps) continue;
        effort_.exhausted = true;
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  std::optional<Path> Extend(const LevelLabel& label, DeviceMask in_use) {
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

  // Tries the farthest end first, to find a way to the last unit early.
  std::optional<Path> ExtendOver(const LevelLabel& label, DeviceMask in_use, int d) {
    const bool one_end = farthest_only_ && !OpensAny(in_use, d);
    const int nearest = std::max(label.boundary + 1, ahead_.Needed(chain_.All() & ~in_use));
    for (int e = problem_.reach[d][label.boundary]; e >= nearest; --e) {
      ++effort_.steps;
      LevelLabel next = label;
      if (!Draw(in_use, d, label.boundary, e, next.used)) continue;
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

  // Returns whether the device draws on a group in which others may follow.
  bool OpensAny(DeviceMask in_use, int d) const {
    for (const ChainGroup& group : problem_.groups) {
      if ((group.members & One(d)) != 0 && group.Open(in_use)) return true;
    }
    return false;
  }

  bool Draw(DeviceMask in_use, int d, int begin, int end, GroupUse& used) {
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

  bool Dominates(const LevelLabel& a, const LevelLabel& b) const {
    if (farthest_only_ ? a.boundary < b.boundary : a.boundary != b.boundary || a.last != b.last) {
      return false;
    }
    for (size_t g = 0; g < problem_.groups.size(); ++g) {
      if (a.used[g] > b.used[g]) return false;
    }
    return true;
  }

  void Insert(const LevelLabel& label, DeviceMask in_use) {
    std::vector<LevelLabel>& labels = states_[in_use];
    effort_.steps += labels.size();
    for (const LevelLabel& other : labels) {
      if (Dominates(other, label)) return;
    }
    std::erase_if(labels, [&](const LevelLabel& other) { return Dominates(label, other); });
    labels.push_back(label);
  }

  const SumProblem& problem_;
  const Chain& chain_;
  LevelEffort& effort_;
  const bool farthest_only_;
  Ahead ahead_;
  std::vector<std::vector<LevelLabel>> states_;  // [in use]
};

}  // namespace

std::optional<Path> SearchLevel(const SumProblem& problem, LevelEffort& effort) {
  return LevelSearch(problem, effort).Run();
}

}  // namespace trine::planner
