#include "dispatch/planner/relaxed.h"

#include <algorithm>

namespace trine::planner {

SumProblem MakeSumProblem(const Chain& chain, DeviceMask required) {
  SumProblem problem;
  problem.chain = &chain;
  problem.reach = chain.MemoryReach();
  problem.groups = chain.pools;
  problem.required = required;
  for (const ChainDevice& device : chain.devices) {
    Prefix& cost = problem.cost.emplace_back(device.time);
    for (int64_t& ns : cost) ns *= kCostPerNs;
    problem.first.push_back(device.run_ns * kCostPerNs + 1);
  }
  return problem;
}

Relaxed::Relaxed(const SumProblem& problem)
    : problem_(problem), n_(problem.chain->n()), units_(problem.chain->units) {
  const DeviceMask all = problem.chain->All();
  size_t rows = 0;
  first_row_.reserve(static_cast<size_t>(all) + 1);
  for (DeviceMask in_use = 0; in_use <= all; ++in_use) {
    first_row_.push_back(rows);
    rows += in_use == 0 ? 1 : static_cast<size_t>(std::popcount(in_use));
  }
  to_go_.assign(rows * (units_ + 1), kInfinite);
  earliest_.assign(rows, units_);
  window_ends_.resize(static_cast<size_t>(units_) + 1);
  window_costs_.resize(window_ends_.size());
  FillFarthest();
  // A set has a larger number than its subsets.
  for (DeviceMask in_use = all + 1; in_use-- > 0;) Fill(in_use);
}

void Relaxed::FillFarthest() {
  farthest_.assign(first_row_.size(), 0);
  for (DeviceMask in_use = 1; in_use < farthest_.size(); ++in_use) {
    for (int d = 0; d < n_; ++d) {
      if ((in_use & One(d)) == 0) continue;
      const int before = farthest_[in_use & ~One(d)];
      farthest_[in_use] = std::max(farthest_[in_use], problem_.reach[d][before]);
    }
  }
}

int64_t Relaxed::StepCost(DeviceMask in_use, int last, int d) const {
  return in_use == 0 ? problem_.first[d] : problem_.Next(last, d);
}

// Fills from[b] with the least cost of the units after b if device d begins a segment there. Valid
// from the returned boundary to the farthest that the devices in use reach.
int Relaxed::FillFrom(DeviceMask in_use, int d, std::vector<int64_t>& from) {
  const int64_t* rest = &to_go_[Index(in_use | One(d), d)];
  const int64_t* spent = problem_.cost[d].data();
  const int* reach = problem_.reach[d].data();
  // The ends that can still be the best, the nearest last. Farther ends stay only while they are
  // better.
  int* ends = window_ends_.data();
  int64_t* costs = window_costs_.data();
  size_t head = 0, tail = 0;
  const auto add = [&](int e) {
    if (rest[e] >= kInfinite) return;
    const int64_t cost = spent[e] + rest[e];
    while (tail > head && costs[tail - 1] >= cost) --tail;
    ends[tail] = e;
    costs[tail++] = cost;
  };
  const int earliest = Earliest(in_use | One(d), d);
  int b = std::min(farthest_[in_use], units_ - 1);
  for (int e = reach[b]; e > b + 1; --e) add(e);
  for (; b >= 0 && reach[b] >= earliest; --b) {
    add(b + 1);
    while (head < tail && ends[head] > reach[b]) ++head;
    from[b] = head < tail ? costs[head] - spent[b] : kInfinite;
  }
  return b + 1;
}

void Relaxed::Fill(DeviceMask in_use) {
  std::vector<int64_t> from(static_cast<size_t>(units_) + 1);
  const int end = std::min(farthest_[in_use], units_ - 1) + 1;
  if ((problem_.required & ~in_use) == 0) {
    for (int last = 0; last < n_; ++last) {
      if ((in_use & One(last)) != 0) to_go_[Index(in_use, last) + units_] = 0;
    }
  }
  for (int d = 0; d < n_; ++d) {
    if (!problem_.chain->MayFollow(in_use, d)) continue;
    const int begin = FillFrom(in_use, d, from);
    if (begin >= end) continue;
    for (int last = 0; last < n_; ++last) {
      if (in_use == 0 ? last != 0 : (in_use & One(last)) == 0) continue;
      const int64_t step = StepCost(in_use, last, d);
      if (step >= kInfinite) continue;
      int64_t* to_go = &to_go_[Index(in_use, last)];
      for (int b = begin; b < end; ++b) to_go[b] = std::min(to_go[b], from[b] + step);
      int& earliest = earliest_[Row(in_use, last)];
      earliest = std::min(earliest, begin);
    }
    steps_ += static_cast<uint64_t>(end - begin);
  }
}

bool Relaxed::OnBest(DeviceMask in_use, int last, int d, int begin, int end) const {
  const int64_t rest = ToGo(in_use | One(d), d, end);
  const int64_t step = StepCost(in_use, last, d);
  return rest < kInfinite && step < kInfinite &&
         step + problem_.Run(d, begin, end) + rest == ToGo(in_use, last, begin);
}

// Returns where segments of d that begin in `begins` can end on a best placement.
std::vector<bool> Relaxed::Ends(DeviceMask in_use, int last, int d,
                                const std::vector<bool>& begins) const {
  std::vector<bool> ends(static_cast<size_t>(units_) + 1);
  for (int b = 0; b < units_; ++b) {
    if (!begins[b]) continue;
    for (int e = b + 1; e <= problem_.reach[d][b]; ++e) {
      if (OnBest(in_use, last, d, b, e)) ends[e] = true;
    }
  }
  return ends;
}

// All best placements have the same ToGo, so it is enough to know which boundaries some best
// placement with these devices passes. First the devices are chosen, in order, then the ends.
Path Relaxed::BestPath() const {
  std::vector<int> order;
  std::vector<std::vector<bool>> passes;
  passes.emplace_back(static_cast<size_t>(units_) + 1);
  passes.back()[0] = true;
  DeviceMask in_use = 0;
  while (!passes.back()[units_]) {
    const int last = order.empty() ? 0 : order.back();
    for (int d = 0; d < n_; ++d) {
      if (!problem_.chain->MayFollow(in_use, d)) continue;
      std::vector<bool> ends = Ends(in_use, last, d, passes.back());
      if (std::none_of(ends.begin(), ends.end(), [](bool end) { return end; })) continue;
      passes.push_back(std::move(ends));
      order.push_back(d);
      in_use |= One(d);
      break;
    }
  }
  // Keep the boundaries from which exactly these devices continue to the end.
  std::vector<int> last_of(order.size());
  passes.back().assign(static_cast<size_t>(units_) + 1, false);
  passes.back()[units_] = true;
  for (size_t i = order.size(); i-- > 0;) {
    in_use &= ~One(order[i]);
    last_of[i] = i == 0 ? 0 : order[i - 1];
    for (int b = 0; b < units_; ++b) {
      if (!passes[i][b]) continue;
      bool goes_on = false;
      for (int e = b + 1; e <= problem_.reach[order[i]][b] && !goes_on; ++e) {
        goes_on = passes[i + 1][e] && OnBest(in_use, last_of[i], order[i], b, e);
      }
      passes[i][b] = goes_on;
    }
  }
  Path path;
  int begin = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    int end = begin + 1;
    while (!passes[i + 1][end] || !OnBest(in_use, last_of[i], order[i], begin, end)) ++end;
    path = path.With(order[i], end);
    in_use |= One(order[i]);
    begin = end;
  }
  return path;
}

}  // namespace trine::planner
