// Measures a curve of costs, and doubts it.
//
// More tokens never take less time, and n times the tokens take at most about n times as long. A
// point that contradicts its neighbours in this is measured again, and so is a point whose rounds
// are far apart. A point that goes on contradicting the others is not kept: the points beside it
// say what it should have been.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dispatch/cost/device_costs.h"

namespace trine {

struct CurveCare {
  int rounds = 5;  // that each measurement of a point takes
  int again = 3;   // times that a doubtful point is measured again, at most
  // After `least` points, a point of this cost or more is the last.
  size_t least = 3;
  double enough = std::numeric_limits<double>::infinity();
};

struct SettledCurve {
  CostCurve curve;              // never falls
  std::vector<double> spreads;  // RepeatedCost::spread of each of its points
  // Names each point that was measured again or not kept, with the reason: "16 tokens: ...".
  std::vector<std::string> doubts;
};

// Measures a curve. `sizes` are in order, at most 16. `measure` returns the cost at sizes[i], in
// one round; costs below 1e-9 count as 1e-9. Returns the first error of `measure`.
absl::StatusOr<SettledCurve> SettleCurve(
    const std::vector<double>& sizes, const std::function<absl::StatusOr<double>(size_t)>& measure,
    const CurveCare& care);

// The cost of a product's weight at the fewest tokens, where weights have to be read.
struct ReadCost {
  double cost_ns = 0;
  double bytes = 0;  // of one weight
};

// Returns whether a type's weights are read much faster than those of every other type, both by
// the bytes and by the weights. All types are read from the same memory, so such a cost is wrong.
// Returns false if there are fewer than two other types.
bool IsTooFastForItsPeers(const ReadCost& type, const std::vector<ReadCost>& others);

}  // namespace trine
