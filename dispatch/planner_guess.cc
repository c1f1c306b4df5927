#include "dispatch/planner_guess.h"

#include <algorithm>
#include <vector>

namespace trine::planner {
namespace {

constexpr int kRounds = 2;  // until the shares of one attempt keep to all groups

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

// One attempt.
void Improvise(const SumProblem& problem, const Path& start, int favoured, Found& best) {
  const Chain& chain = *problem.chain;
  std::vector<std::vector<int64_t>> shares(problem.groups.size(),
                                           std::vector<int64_t>(chain.devices.size(), kInfinite));
  Path path = start;
  for (int round = 0; round < kRounds; ++round) {
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
    const int64_t step = i == 0 ? problem.first[d] : problem.Next(path.device[i - 1], d);
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

void GuessShares(const SumProblem& problem, const Path& path, Found& best) {
  const DeviceSet overdrawing = Overdrawing(problem, path);
  Improvise(problem, path, -1, best);
  for (int d = 0; d < problem.chain->n(); ++d) {
    if ((overdrawing & One(d)) != 0) Improvise(problem, path, d, best);
  }
}

}  // namespace trine::planner
