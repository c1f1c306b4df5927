#include "dispatch/planner/search.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "dispatch/planner/labels.h"

// The search extends beginnings of placements (labels) by one segment at a time, set of devices
// after set of devices. The answer is exact, because only beginnings that can't be the best are
// dropped: those that another one dominates (labels.h), and those that a bound drops.
//
// A bound drops a label if the label's sum and the least that the rest adds to it (bound.h) are
// beyond a limit. There are bounds of
//   - the cost: the limit is the cost of the best placement that is known;
//   - the use of a group: the limit is the group's capacity;
//   - the cost with a price on each unit of use of the groups: the limit is the best known cost and
//     the price of the whole groups. A placement that costs no more and keeps to the groups keeps
//     to that limit, too.
//
// A group is counted only after some placement has overdrawn it. Until then the search goes on as
// if the group had room for everything. If kMostCounted groups are counted already, it goes on so
// to its end: it takes no placement that overdraws a group, but its answer may not be the best.
namespace trine::planner {
namespace {

constexpr int kOfCost = -1;  // in place of a group

struct LimitedBound {
  Bound bound;
  int group = kOfCost;  // the group whose use it bounds
  int64_t limit = 0;    // of the use; or in addition to the limit of the cost
};

Measure UseMeasure(const SearchProblem& problem, const ChainGroup& group) {
  Measure use = problem.cost;
  for (int d = 0; d < problem.chain->n(); ++d) {
    const bool is_member = (group.members & One(d)) != 0;
    use.units[d] = is_member ? group.used[d] : Prefix(use.units[d].size());
    for (std::vector<int64_t>& row : use.step) {
      if (row[d] < kInfinite) row[d] = is_member ? group.fixed[d] : 0;
    }
  }
  return use;
}

// Adds a price on the use of the group to a measure. Returns the price of the whole group.
int64_t AddPrice(const ChainGroup& group, double price, Measure& measure) {
  // Products are rounded to 53 bits. This is the most that it can add to one segment.
  constexpr int64_t kRounding = 128;
  const auto times_price = [price](int64_t use) {
    return static_cast<int64_t>(price * static_cast<double>(use));
  };
  int64_t whole = times_price(group.capacity);
  for (size_t d = 0; d < measure.units.size(); ++d) {
    if (group.used[d].empty()) continue;
    whole += kRounding;
    for (size_t b = 0; b < measure.units[d].size(); ++b) {
      measure.units[d][b] += times_price(group.used[d][b]);
    }
    for (std::vector<int64_t>& row : measure.step) {
      if (row[d] < kInfinite) row[d] += times_price(group.fixed[d]);
    }
  }
  return whole;
}

// Returns whether sums with these prices, one per group, stay far below infinity.
bool AreModest(const std::vector<double>& prices, const std::vector<ChainGroup>& groups) {
  double most = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (prices[g] <= 0) continue;
    double use = static_cast<double>(groups[g].capacity);
    for (size_t d = 0; d < groups[g].used.size(); ++d) {
      if (groups[g].used[d].empty()) continue;
      use += static_cast<double>(groups[g].fixed[d] + groups[g].used[d].back());
    }
    most += prices[g] * use;
  }
  return most < static_cast<double>(int64_t{1} << 57);
}

class LeastSearch {
 public:
  // `best`: a placement that is known, or only a limit of the cost. `any`: stops at the first
  // placement that keeps to the limit.
  LeastSearch(const SearchProblem& problem, const Found& best, bool any, Effort& effort)
      : problem_(problem),
        chain_(*problem.chain),
        n_(chain_.n()),
        any_(any),
        effort_(effort),
        best_(best),
        limit_(best.cost),
        prices_(problem.groups.size()),
        counted_(problem.groups.size()) {
    bounds_.reserve(kMostBounds);
  }

  Found Run() {
    AddBound(problem_.cost, kOfCost, 0);
    if (Settled()) return best_;
    cheapest_ = bounds_[0].bound.BestPath();
    Consider(cheapest_);
    while (!Settled()) {
      if (missing_ >= 0) {
        Count(static_cast<size_t>(missing_));
      } else if (guessed_with_ < bounds_.size()) {
        guessed_with_ = bounds_.size();
        for (int d = -1; d < n_ && IsPoor(); ++d) Guess(d);
      } else {
        FindSome();
        if (!Settled()) Widen();
        if (missing_ < 0 || effort_.exhausted) break;
      }
    }
    return best_;
  }

 private:
  // Returns whether there is nothing more to find.
  bool Settled() const { return hopeless_ || (any_ && best_.ok()); }

  int64_t LimitOf(const LimitedBound& b) const {
    return b.group == kOfCost ? b.limit + limit_ : b.limit;
  }

  const Bound& AddBound(Measure measure, int group, int64_t limit) {
    bounds_.push_back({Bound(problem_, std::move(measure)), group, limit});
    const Bound& bound = bounds_.back().bound;
    effort_.steps += bound.steps();
    if (bound.Best() >= kInfinite || bound.Best() > LimitOf(bounds_.back())) hopeless_ = true;
    return bound;
  }

  // Takes a whole placement if it keeps to all groups. Otherwise notes a group to count.
  void Consider(const Path& path) {
    bool keeps = true;
    for (size_t g = 0; g < problem_.groups.size(); ++g) {
      if (UseOf(problem_.groups[g], path) <= problem_.groups[g].capacity) continue;
      keeps = false;
      if (counted_[g]) continue;
      if (counts_ == kMostCounted) {
        effort_.uncounted = true;
      } else {
        missing_ = static_cast<int>(g);
      }
    }
    if (!keeps) return;
    best_.Offer(SumOf(problem_.cost, path), path);
    limit_ = std::min(limit_, best_.cost);
  }

  void Count(size_t g) {
    missing_ = -1;
    counted_[g] = true;
    ++counts_;
    const ChainGroup& group = problem_.groups[g];
    const Bound& use = AddBound(UseMeasure(problem_, group), static_cast<int>(g), group.capacity);
    if (hopeless_) return;
    const Path least_use = use.BestPath();
    Consider(least_use);
    if (UseOf(group, cheapest_) > group.capacity) FindPrice(g, least_use);
  }

  // The cost of a placement as a function of a group's price: a line. The bound at a price is given
  // by the line that is lowest there.
  struct Line {
    double at_none = 0;
    double slope = 0;  // use beyond the group's capacity

    double At(double price) const { return at_none + price * slope; }
  };

  // Returns the path's line for group g, with the other groups at their prices.
  Line LineOf(size_t g, const Path& path) const {
    Line line{static_cast<double>(SumOf(problem_.cost, path)), 0};
    for (size_t other = 0; other < prices_.size(); ++other) {
      const ChainGroup& group = problem_.groups[other];
      const double excess = static_cast<double>(UseOf(group, path) - group.capacity);
      (other == g ? line.slope : line.at_none) += other == g ? excess : prices_[other] * excess;
    }
    return line;
  }

  // Looks for the price with the highest bound: the price at which a rising and a falling line
  // cross and no other line is below them. Keeps the bounds at all prices that it tries: beginnings
  // that leave too much of the group, or too little, are recognised at prices beside the best one.
  void FindPrice(size_t g, const Path& least_use) {
    constexpr int kTries = 8;
    constexpr double kCloseEnough = 1e-6;
    Line over = LineOf(g, cheapest_);
    Line under = LineOf(g, least_use);
    for (int i = 0; i < kTries && priced_ < kMostPriced && !Settled(); ++i) {
      const double price = (under.at_none - over.at_none) / (over.slope - under.slope);
      if (!(price > 0)) return;
      std::vector<double> prices = prices_;
      prices[g] = price;
      if (!AreModest(prices, problem_.groups)) return;
      prices_ = std::move(prices);
      const Bound& priced = AddPriced();
      if (hopeless_) return;
      cheapest_ = priced.BestPath();
      Consider(cheapest_);
      const Line line = LineOf(g, cheapest_);
      if (line.At(price) >= over.At(price) * (1 - kCloseEnough)) return;
      (line.slope > 0 ? over : under) = line;
    }
  }

  const Bound& AddPriced() {
    ++priced_;
    Measure priced = problem_.cost;
    int64_t whole = 0;
    for (size_t g = 0; g < prices_.size(); ++g) {
      if (prices_[g] > 0) whole += AddPrice(problem_.groups[g], prices_[g], priced);
    }
    return AddBound(std::move(priced), kOfCost, whole);
  }

  // Returns the highest bound of the cost of all placements.
  int64_t LeastCost() const {
    int64_t least = 0;
    for (const LimitedBound& b : bounds_) {
      if (b.group == kOfCost) least = std::max(least, b.bound.Best() - b.limit);
    }
    return least;
  }

  // Returns whether the known placement costs so much that Widen may take long.
  bool IsPoor() const {
    return !Settled() && (!best_.ok() || best_.cost - best_.cost / 16 > LeastCost());
  }

  // Looks for placements in which each member of a group keeps to a share of it, so that nothing is
  // shared. Begins with the shares that the members have in the cheapest placement. `favoured`: a
  // device that keeps all that it has in that placement; -1: none.
  void Guess(int favoured) {
    constexpr int kRounds = 2;  // the placement of the first round may overdraw other groups
    SearchProblem apart = problem_;
    Path path = bounds_[0].bound.BestPath();
    for (int round = 0; round < kRounds; ++round) {
      for (const ChainGroup& group : problem_.groups) ShareOut(group, path, favoured, apart.reach);
      const Bound bound(apart, problem_.cost);
      effort_.steps += bound.steps();
      if (bound.Best() >= kInfinite) return;
      path = bound.BestPath();
      Consider(path);
    }
  }

  void ShareOut(const ChainGroup& group, const Path& path, int favoured, Reach& reach) const {
    const int64_t all = UseOf(group, path);
    if (all <= group.capacity) return;
    std::vector<int64_t> use(static_cast<size_t>(n_));
    path.ForEach([&](int d, int begin, int end) {
      if ((group.members & One(d)) != 0) use[d] = group.Use(d, begin, end);
    });
    const int64_t kept = favoured < 0 ? 0 : use[favoured];
    const double part = static_cast<double>(group.capacity) / static_cast<double>(all);
    for (int d = 0; d < n_; ++d) {
      if ((group.members & One(d)) == 0) continue;
      int64_t share = static_cast<int64_t>(part * static_cast<double>(use[d]));
      if (kept > 0) share = d == favoured ? kept : group.capacity - kept;
      for (int b = 0; b < chain_.units; ++b) {
        while (reach[d][b] > b && group.Use(d, b, reach[d][b]) > share) --reach[d][b];
      }
    }
  }

  // Finds any placement if none is known. Without one the cost has no limit.
  void FindSome() {
    if (best_.ok() || any_) return;
    const std::optional<Path> some = FindAny(problem_, effort_);
    if (some.has_value()) best_.Offer(SumOf(problem_.cost, *some), *some);
    hopeless_ = !best_.ok();
    limit_ = best_.cost;
  }

  // Extends all labels. Assumes that the best placement costs little more than the highest bound,
  // which drops most labels; if there is no such placement, assumes more.
  void Widen() {
    const int64_t least = LeastCost();
    int64_t slack = any_ ? limit_ : least / 512 + 1;
    do {
      limit_ = std::min(best_.cost, least + slack);
      slack *= 2;
      ExtendAll();
    } while (limit_ < best_.cost && missing_ < 0 && !effort_.exhausted);
    limit_ = best_.cost;
  }

  // Extends all labels, until a group is missing.
  void ExtendAll() {
    std::vector<std::pair<size_t, const ChainGroup*>> groups;
    for (size_t i = 0; i < bounds_.size(); ++i) {
      if (bounds_[i].group != kOfCost) groups.emplace_back(i, &problem_.groups[bounds_[i].group]);
    }
    Labels labels(problem_, std::move(groups));
    Label empty;
    empty.last = n_;
    Extend(empty, 0, labels);
    for (DeviceMask in_use = 1; in_use <= chain_.All(); ++in_use) {
      const bool all = labels.Take(in_use, [&](const Label& label) {
        if (missing_ >= 0 || Settled() || effort_.Spent()) return false;
        Extend(label, in_use, labels);
        return true;
      });
      if (!all) return;
    }
  }

  // Extends a label by each segment after which no bound drops it.
  void Extend(const Label& label, DeviceMask in_use, Labels& labels) {
    const int begin = label.Boundary();
    Label next;
    for (int d = 0; d < n_; ++d) {
      if (!chain_.MayFollow(in_use, d) || problem_.cost.step[label.last][d] >= kInfinite) continue;
      next.last = d;
      const DeviceMask then = in_use | One(d);
      const int nearest = std::max(begin + 1, bounds_[0].bound.Earliest(then, d));
      for (int end = nearest; end <= problem_.reach[d][begin]; ++end) {
        ++effort_.steps;
        if (!AddUp(label, then, d, begin, end, next)) continue;
        next.path = label.path.With(d, end);
        if (end == chain_.units) {
          Consider(next.path);
        } else {
          effort_.steps += labels.Insert(next, then);
        }
      }
    }
  }

  // Computes the sums of `next`. Returns whether no bound drops it. The last bounds are the best.
  bool AddUp(const Label& label, DeviceMask in_use, int d, int begin, int end, Label& next) const {
    for (size_t i = bounds_.size(); i-- > 0;) {
      const Bound& bound = bounds_[i].bound;
      const Measure& measure = bound.measure();
      next.sums[i] = label.sums[i] + measure.step[label.last][d] + measure.Run(d, begin, end);
      if (next.sums[i] + bound.ToGo(in_use, d, end) > LimitOf(bounds_[i])) return false;
    }
    return true;
  }

  const SearchProblem& problem_;
  const Chain& chain_;
  const int n_;
  const bool any_;
  Effort& effort_;
  Found best_;
  int64_t limit_;                     // no placement is looked for that costs more
  std::vector<double> prices_;        // [group]
  std::vector<bool> counted_;         // [group]
  int counts_ = 0;                    // groups that are counted
  int missing_ = -1;                  // a group to count; -1: none
  bool hopeless_ = false;             // a bound shows that nothing is better than best_
  std::vector<LimitedBound> bounds_;  // the first one is of the cost alone
  int priced_ = 0;                    // bounds with prices
  size_t guessed_with_ = 0;           // the bounds that there were at the last guesses
  Path cheapest_;                     // the cheapest placement at the last prices
};

}  // namespace

SearchProblem MakeSearchProblem(const Chain& chain, DeviceMask required) {
  SearchProblem problem{&chain, chain.MemoryReach(), chain.pools, required, {}};
  problem.cost.step = chain.transfer;
  problem.cost.step.emplace_back(chain.devices.size());
  for (const ChainDevice& device : chain.devices) {
    Prefix& units = problem.cost.units.emplace_back(device.time);
    for (int64_t& ns : units) ns *= kCostPerNs;
  }
  for (std::vector<int64_t>& row : problem.cost.step) {
    for (int d = 0; d < chain.n(); ++d) {
      row[d] = (row[d] + chain.devices[d].run_ns) * kCostPerNs + 1;
    }
  }
  return problem;
}

int64_t SumOf(const Measure& measure, const Path& path) {
  int64_t sum = 0;
  size_t last = measure.units.size();
  path.ForEach([&](int d, int begin, int end) {
    sum = std::min(kInfinite, sum + measure.step[last][d] + measure.Run(d, begin, end));
    last = static_cast<size_t>(d);
  });
  return sum;
}

Found FindLeast(const SearchProblem& problem, const std::vector<Path>& known, Effort& effort) {
  Found best;
  for (const Path& path : known) best.Offer(SumOf(problem.cost, path), path);
  return LeastSearch(problem, best, false, effort).Run();
}

std::optional<Path> FindAny(const SearchProblem& problem, Effort& effort) {
  // Looks for a placement that uses little of the first group, as if that were its cost.
  SearchProblem thrifty = problem;
  Found limit;
  if (!problem.groups.empty()) {
    thrifty.cost = UseMeasure(problem, problem.groups.front());
    thrifty.groups.erase(thrifty.groups.begin());
    limit.cost = problem.groups.front().capacity;
  }
  const Found found = LeastSearch(thrifty, limit, true, effort).Run();
  if (!found.ok()) return std::nullopt;
  return found.path;
}

}  // namespace trine::planner
