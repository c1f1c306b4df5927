#include "dispatch/planner/guess.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace trine::planner {
namespace {

constexpr int kRounds = 2;  // attempts to make the shares keep to all groups

// Gives each member of an overdrawn group a share of it, in proportion to its use in the path. If a
// member is `favoured`, it gets all that it uses, and each other member may use the rest. -1: none.
void ShareOut(const Chain& chain, const ChainGroup& group, const Path& path, int favoured,
              std::vector<std::vector<int64_t>>& shares, size_t g) {
  const int64_t total = UseOf(group, path);
  if (total <= group.capacity) return;
  std::vector<int64_t> use(chain.devices.size());
  path.ForEach([&](int d, int begin, int end) {
    if ((group.members & One(d)) != 0) use[d] = group.Use(d, begin, end);
  });
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

// Makes one attempt: searches with fixed shares, and improves `best` if that is cheaper.
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

// The most that the whole use of a group may be priced at, so that sums stay finite.
constexpr double kMostPrice = static_cast<double>(int64_t{1} << 57);
// The most by which rounding can raise the price of one segment: products are rounded to 53 bits.
constexpr int64_t kRounding = 128;

double WholeUse(const Chain& chain, const ChainGroup& group) {
  double whole = static_cast<double>(group.capacity);
  for (int d = 0; d < chain.n(); ++d) {
    if ((group.members & One(d)) != 0) whole += static_cast<double>(group.Use(d, 0, chain.units));
  }
  return whole;
}

void AddPrice(const ChainGroup& group, double price, PricedBound& bound) {
  SumProblem& priced = *bound.problem;
  int members = 0;
  for (int d = 0; d < priced.chain->n(); ++d) {
    if ((group.members & One(d)) == 0) continue;
    ++members;
    const auto times_price = [price](int64_t use) {
      return static_cast<int64_t>(price * static_cast<double>(use));
    };
    for (size_t b = 0; b < priced.cost[d].size(); ++b) {
      priced.cost[d][b] += times_price(group.used[d][b]);
    }
    priced.first[d] += times_price(group.fixed[d]);
  }
  bound.allowance +=
      static_cast<int64_t>(price * static_cast<double>(group.capacity)) + members * kRounding;
}

class PriceSearch {
 public:
  PriceSearch(const SumProblem& problem, Found& best)
      : problem_(problem), best_(best), prices_(problem.groups.size()) {}

  // Prices one group after the other, with the groups before it at the prices found for them.
  PricedBounds Run(const Path& path) {
    bound_ = Make();
    Path current = path;
    for (size_t g = 0; g < prices_.size(); ++g) {
      if (UseOf(problem_.groups[g], current) <= problem_.groups[g].capacity) continue;
      Price(g, current);
      if (bound_.relaxed->Best() < kInfinite) current = bound_.relaxed->BestPath();
    }
    PricedBounds bounds;
    bounds[0] = std::move(bound_);
    const std::vector<double> best = prices_;
    for (size_t i = 1; i < kPrices; ++i) {
      for (size_t g = 0; g < best.size(); ++g) prices_[g] = best[g] * kAside[i - 1];
      bounds[i] = Make();
    }
    return bounds;
  }

 private:
  static constexpr double kAside[] = {0.9, 1.1};

  PricedBound Make() {
    PricedBound bound;
    bound.problem = std::make_unique<SumProblem>(problem_);
    for (size_t g = 0; g < prices_.size(); ++g) {
      if (prices_[g] > 0) AddPrice(problem_.groups[g], prices_[g], bound);
    }
    bound.relaxed = std::make_unique<Relaxed>(*bound.problem);
    best_.steps += bound.relaxed->steps();
    return bound;
  }

  // The cost of a placement as a function of the price: a line. The bound at a price is given by
  // the line that is lowest there.
  struct Line {
    double at_none = 0;
    double slope = 0;  // use beyond the group's capacity

    double At(double price) const { return at_none + price * slope; }
  };

  // Returns the path's line for group g, with the other groups at their prices.
  Line LineOf(size_t g, const Path& path) const {
    double cost = static_cast<double>(CostOf(problem_, path));
    for (size_t other = 0; other < prices_.size(); ++other) {
      if (other != g) cost += prices_[other] * Excess(other, path);
    }
    return {cost, Excess(g, path)};
  }

  double Excess(size_t g, const Path& path) const {
    const ChainGroup& group = problem_.groups[g];
    return static_cast<double>(UseOf(group, path) - group.capacity);
  }

  // Keeps the price if its bound is better. Returns the line of the cheapest placement at it.
  std::optional<Line> Try(size_t g, double price) {
    const double before = std::exchange(prices_[g], price);
    PricedBound bound = Make();
    if (bound.relaxed->Best() >= kInfinite) return std::nullopt;
    const Path path = bound.relaxed->BestPath();
    if (Overdrawing(problem_, path) == 0) best_.Offer(CostOf(problem_, path), path);
    const bool better =
        bound.relaxed->Best() - bound.allowance > bound_.relaxed->Best() - bound_.allowance;
    if (better) {
      bound_ = std::move(bound);
    } else {
      prices_[g] = before;
    }
    return LineOf(g, path);
  }

  // Returns the line of a placement that does not overdraw the group: of a known placement, or of
  // one that is found by raising the price.
  std::optional<Line> Under(size_t g, double most, const Line& over) {
    if (best_.ok()) {
      const Line known = LineOf(g, best_.path);
      if (known.slope <= 0) return known;
    }
    constexpr double kGrowth = 16;
    double price = over.At(0) / 16 / static_cast<double>(problem_.groups[g].capacity + 1);
    for (; price > 0 && price < most; price *= kGrowth) {
      const std::optional<Line> line = Try(g, price);
      if (!line.has_value() || line->slope <= 0) return line;
    }
    return std::nullopt;
  }

  // Finds the highest bound: at the price where a rising and a falling line cross and no other line
  // is below them.
  void Price(size_t g, const Path& path) {
    constexpr int kTries = 8;
    constexpr double kCloseEnough = 1e-6;
    const double most = kMostPrice / WholeUse(*problem_.chain, problem_.groups[g]);
    Line over = LineOf(g, path);
    std::optional<Line> under = Under(g, most, over);
    for (int i = 0; i < kTries && under.has_value(); ++i) {
      const double price = (under->at_none - over.at_none) / (over.slope - under->slope);
      if (!(price > 0 && price < most)) return;
      const std::optional<Line> line = Try(g, price);
      if (!line.has_value() || line->At(price) >= over.At(price) * (1 - kCloseEnough)) return;
      (line->slope > 0 ? over : *under) = *line;
    }
  }

  const SumProblem& problem_;
  Found& best_;
  std::vector<double> prices_;
  PricedBound bound_;
};

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

DeviceMask Overdrawing(const SumProblem& problem, const Path& path) {
  DeviceMask overdrawing = 0;
  DeviceMask in_use = 0;
  path.ForEach([&](int d, int, int) { in_use |= One(d); });
  for (const ChainGroup& group : problem.groups) {
    if (UseOf(group, path) > group.capacity) overdrawing |= group.members & in_use;
  }
  return overdrawing;
}

void GuessShares(const SumProblem& problem, const Path& path, Found& best) {
  const DeviceMask overdrawing = Overdrawing(problem, path);
  Improvise(problem, path, -1, best);
  for (int d = 0; d < problem.chain->n(); ++d) {
    if ((overdrawing & One(d)) != 0) Improvise(problem, path, d, best);
  }
}

PricedBounds PriceGroups(const SumProblem& problem, const Path& path, Found& best) {
  return PriceSearch(problem, best).Run(path);
}

}  // namespace trine::planner
