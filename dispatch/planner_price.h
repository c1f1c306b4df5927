// A tighter bound than Relaxed's where devices share: what is used of a group has a price.
//
// With a price on each byte of a pool, the cheapest placement costs at most what the best one that
// keeps to the pool costs, plus the price of the whole pool. So its cost less that price is a lower
// bound, and the price under which the pool is just about used up makes it a good one.
#ifndef TRINE_DISPATCH_PLANNER_PRICE_H_
#define TRINE_DISPATCH_PLANNER_PRICE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "dispatch/planner_guess.h"
#include "dispatch/planner_relaxed.h"

namespace trine::planner {

struct PricedBound {
  std::unique_ptr<SumProblem> problem;  // with prices in its costs
  std::unique_ptr<Relaxed> relaxed;
  int64_t allowance = 0;  // the price of all that the groups hold, rounded up

  // Of every placement that begins with a label whose cost, prices included, is `priced`.
  int64_t Bound(int64_t priced, DeviceSet in_use, int last, int boundary) const {
    return priced + relaxed->ToGo(in_use, last, boundary) - allowance;
  }
};

// The best price, and one below and one above it: for a beginning that leaves too little of a group
// for the rest, or too much, those bounds are better.
inline constexpr size_t kPrices = 3;
using PricedBounds = std::array<PricedBound, kPrices>;

// `path` is the best where nothing has a price. Placements met on the way that keep to the groups
// are offered to `best`.
PricedBounds PriceGroups(const SumProblem& problem, const Path& path, Found& best);

}  // namespace trine::planner

#endif  // TRINE_DISPATCH_PLANNER_PRICE_H_
