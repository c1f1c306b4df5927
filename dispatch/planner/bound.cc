#include "dispatch/planner/bound.h"

#include <algorithm>
#include <utility>

namespace trine::planner {

// The cost of a run is a difference of two prefix sums. So one sliding window over the ends of a
// segment finds the best end for each of its beginnings, and everything takes O(2^n n^2 units)
// steps.
Bound::Bound(const SearchProblem& problem, Measure measure)
    : problem_(problem),
      measure_(std::move(measure)),
      n_(problem.chain->n()),
      units_(problem.chain->units) {
  const DeviceMask all = problem.chain->All();
  size_t rows = 0;
  first_row_.reserve(static_cast<size_t>(all) + 1);
  for (DeviceMask in_use = 0; in_use <= all; ++in_use) {
    first_row_.push_back(rows);
    rows += in_use == 0 ? 1 : static_cast<size_t>(std::popcount(in_use));
  }
  earliest_.assign(rows, units_);
  FillFarthest();
  const bool possible = farthest_[all] == units_;
  to_go_.assign(possible ? rows * (units_ + 1) : 1, kInfinite);
  if (!possible) return;
  window_ends_.resize(static_cast<size_t>(units_) + 1);
  window_costs_.resize(window_ends_.size());
  // A set has a larger number than its subsets.
  for (DeviceMask in_use = all + 1; in_use-- > 0;) Fill(in_use);
}

void Bound::FillFarthest() {
  farthest_.assign(first_row_.size(), 0);
  for (DeviceMask in_use = 1; in_use < farthest_.size(); ++in_use) {
    for (int d = 0; d < n_; ++d) {
      if ((in_use & One(d)) == 0) continue;
      const int before = farthest_[in_use & ~One(d)];
      farthest_[in_use] = std::max(farthest_[in_use], problem_.reach[d][before]);
    }
  }
}

// Fills from[b] with the least that the units after b add if device d begins a segment there. Valid
// from the returned boundary to the farthest that the devices in use reach.
int Bound::FillFrom(DeviceMask in_use, int d, std::vector<int64_t>& from) {
  const int64_t* rest = &to_go_[Index(in_use | One(d), d)];
  const int64_t* spent = measure_.units[d].data();
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

void Bound::Fill(DeviceMask in_use) {
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
    for (int last = 0; last <= n_; ++last) {
      if (in_use == 0 ? last != n_ : (in_use & One(last)) == 0) continue;
      const int64_t step = measure_.step[last][d];
      if (step >= kInfinite) continue;
      int64_t* to_go = &to_go_[Index(in_use, last)];
      for (int b = begin; b < end; ++b) to_go[b] = std::min(to_go[b], from[b] + step);
      int& earliest = earliest_[Row(in_use, last)];
      earliest = std::min(earliest, begin);
    }
    steps_ += static_cast<uint64_t>(end - begin);
  }
}

Path Bound::BestPath() const {
  Path path;
  DeviceMask in_use = 0;
  int last = n_, begin = 0;
  const auto is_best = [&](int d, int end) {
    const int64_t rest = ToGo(in_use | One(d), d, end);
    return rest < kInfinite &&
           measure_.step[last][d] + measure_.Run(d, begin, end) + rest == ToGo(in_use, last, begin);
  };
  while (begin < units_) {
    int d = 0, end = begin + 1;
    const auto possible = [&] {
      return problem_.chain->MayFollow(in_use, d) && end <= problem_.reach[d][begin];
    };
    while (!possible() || !is_best(d, end)) {
      if (++end <= units_) continue;
      end = begin + 1;
      ++d;
    }
    path = path.With(d, end);
    in_use |= One(d);
    last = d;
    begin = end;
  }
  return path;
}

}  // namespace trine::planner
