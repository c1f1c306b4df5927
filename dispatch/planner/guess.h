// Makes a search short: guesses good placements that keep to the limits of the groups (shared pools
// and domains), and bounds the cost of all others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>

#include "dispatch/planner/chain.h"
#include "dispatch/planner/relaxed.h"

namespace trine::planner {

struct Found {
  int64_t cost = kInfinite;  // as SumProblem counts it
  Path path;
  bool exact = true;  // false: steps ran out, and a better path may exist
  uint64_t steps = 0;

  bool ok() const { return cost < kInfinite; }
  // Takes the placement if it costs less, or as much and is earlier by the rule for ties.
  void Offer(int64_t other_cost, const Path& other) {
    if (std::tie(other_cost, other) >= std::tie(cost, path)) return;
    cost = other_cost;
    path = other;
  }
};

// Returns the cost of a placement, whether it keeps to the limits or not.
int64_t CostOf(const SumProblem& problem, const Path& path);
// Returns the devices with a segment in a group that the placement overdraws; 0 if it overdraws
// none.
DeviceMask Overdrawing(const SumProblem& problem, const Path& path);

// Improves `best` with placements that keep to the groups. Finds them by giving the members of each
// group that `path` overdraws fixed shares of it, and solving the relaxed problem.
void GuessShares(const SumProblem& problem, const Path& path, Found& best);

// Bounds costs more tightly than Relaxed if devices share groups: using a group has a price.
//
// With a price on each byte of a pool, the cheapest placement costs at most as much as the best
// placement that keeps to the pool, plus the price of the whole pool. So the cheapest cost minus
// the price of the pool is a lower bound. The bound is good if the price lets the pool just be used
// up.
struct PricedBound {
  std::unique_ptr<SumProblem> problem;  // with prices in its costs
  std::unique_ptr<Relaxed> relaxed;
  int64_t allowance = 0;  // the price of everything that the groups hold, rounded up

  // Bounds all placements with a beginning whose cost, prices included, is `priced`.
  int64_t Bound(int64_t priced, DeviceMask in_use, int last, int boundary) const {
    return priced + relaxed->ToGo(in_use, last, boundary) - allowance;
  }
};

// The bounds at the best price, at a lower one and at a higher one. The other prices give better
// bounds for a beginning that leaves too little or too much of a group for the rest.
inline constexpr size_t kPrices = 3;
using PricedBounds = std::array<PricedBound, kPrices>;

// Searches for the best prices. `path` is the best placement without prices. Placements found on
// the way that keep to the groups improve `best`.
PricedBounds PriceGroups(const SumProblem& problem, const Path& path, Found& best);

}  // namespace trine::planner
