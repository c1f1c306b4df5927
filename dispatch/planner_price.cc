#include "dispatch/planner_price.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

namespace trine::planner {
namespace {

// A group's whole use may be priced at no more than this, so that sums stay finite.
constexpr double kMostPrice = static_cast<double>(int64_t{1} << 57);
// By how much rounding can raise the price of one segment: products are rounded to 53 bits.
constexpr int64_t kRounding = 128;

int64_t UseOf(const ChainGroup& group, const Path& path) {
  int64_t used = 0;
  int begin = 0;
  for (int i = 0; i < path.size; ++i) {
    const int d = path.device[i];
    if ((group.members & One(d)) != 0) used += group.Use(d, begin, path.end[i]);
    begin = path.end[i];
  }
  return used;
}

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

  // One group after the other, with those before at the prices found for them.
  PricedBound Run(const Path& path) {
    bound_ = Make();
    Path current = path;
    for (size_t g = 0; g < prices_.size(); ++g) {
      if (UseOf(problem_.groups[g], current) <= problem_.groups[g].capacity) continue;
      Price(g);
      if (bound_.relaxed->Best() < kInfinite) current = bound_.relaxed->BestPath();
    }
    return std::move(bound_);
  }

 private:
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

  // Tries a price: keeps it when its bound is better, and says whether the group is overdrawn.
  bool Try(size_t g, double price) {
    const double before = std::exchange(prices_[g], price);
    PricedBound bound = Make();
    if (bound.relaxed->Best() >= kInfinite) return false;
    const Path path = bound.relaxed->BestPath();
    if (Overdrawing(problem_, path) == 0) Offer(path);
    const bool better =
        bound.relaxed->Best() - bound.allowance > bound_.relaxed->Best() - bound_.allowance;
    if (better) {
      bound_ = std::move(bound);
    } else {
      prices_[g] = before;
    }
    return UseOf(problem_.groups[g], path) > problem_.groups[g].capacity;
  }

  void Offer(const Path& path) {
    const int64_t cost = CostOf(problem_, path);
    if (std::tie(cost, path) >= std::tie(best_.cost, best_.path)) return;
    best_.cost = cost;
    best_.path = path;
  }

  // Upwards until the group is no longer overdrawn, then between the last two.
  void Price(size_t g) {
    constexpr double kGrowth = 4;
    constexpr int kGrowths = 8, kHalvings = 5;
    const double most = kMostPrice / WholeUse(*problem_.chain, problem_.groups[g]);
    const double capacity = static_cast<double>(std::max<int64_t>(problem_.groups[g].capacity, 1));
    double high = static_cast<double>(bound_.relaxed->Best()) / 16 / capacity;
    double low = high / 16;
    for (int i = 0; i < kGrowths && high < most && Try(g, high); ++i) {
      low = high;
      high *= kGrowth;
    }
    for (int i = 0; i < kHalvings && high < most; ++i) {
      const double middle = std::sqrt(low * high);
      (Try(g, middle) ? low : high) = middle;
    }
  }

  const SumProblem& problem_;
  Found& best_;
  std::vector<double> prices_;
  PricedBound bound_;
};

}  // namespace

PricedBound PriceGroups(const SumProblem& problem, const Path& path, Found& best) {
  return PriceSearch(problem, best).Run(path);
}

}  // namespace trine::planner
