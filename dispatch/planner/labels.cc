#include "dispatch/planner/labels.h"

#include <algorithm>

namespace trine::planner {

Labels::Labels(const SearchProblem& problem,
               std::vector<std::pair<size_t, const ChainGroup*>> groups)
    : problem_(problem),
      chain_(*problem.chain),
      groups_(std::move(groups)),
      states_(static_cast<size_t>(chain_.All()) + 1) {}

Labels::State& Labels::StateOf(DeviceMask in_use) {
  State& state = states_[in_use];
  if (!state.fronts.empty()) return state;
  state.fronts.resize(static_cast<size_t>(chain_.units));
  for (const auto& [bound, group] : groups_) {
    if (group->Open(in_use)) state.open.push_back(bound);
  }
  const int n = chain_.n();
  state.handicaps.assign(static_cast<size_t>(n) * n, -kInfinite);
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) {
      if ((in_use & One(a)) == 0 || (in_use & One(b)) == 0) continue;
      int64_t& most = state.handicaps[a * n + b];
      for (int d = 0; d < n; ++d) {
        const int64_t after_b = problem_.cost.step[b][d];
        if (!chain_.MayFollow(in_use, d) || after_b >= kInfinite) continue;
        most = std::max(most, problem_.cost.step[a][d] - after_b);
      }
    }
  }
  return state;
}

bool Labels::Dominates(const State& state, const Label& a, const Label& b) const {
  const int64_t cost = a.sums[0] + state.handicaps[a.last * chain_.n() + b.last];
  if (cost > b.sums[0]) return false;
  for (const size_t i : state.open) {
    if (a.sums[i] > b.sums[i]) return false;
  }
  return cost < b.sums[0] || a.path <= b.path;
}

// Comparing labels takes a fraction of a step.
uint64_t Labels::Insert(const Label& label, DeviceMask in_use) {
  State& state = StateOf(in_use);
  std::vector<Label>& front = state.fronts[label.Boundary()];
  for (size_t i = front.size(); i-- > 0;) {
    if (Dominates(state, front[i], label)) return (front.size() - i) / 4;
  }
  const size_t steps = front.size() / 2;
  std::erase_if(front, [&](const Label& other) { return Dominates(state, label, other); });
  front.push_back(label);
  return steps;
}

}  // namespace trine::planner
