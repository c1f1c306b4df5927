#include "runtime/make_model/skew.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/invalid.h"
#include "runtime/make_model/weights.h"

namespace trine {
namespace {

// The functions below use sums and products alone: every machine makes the same models, and the
// functions of C libraries differ in the last bits.

// Returns e to the power of -x, for x from 0 to 50.
double ExpOfMinus(double x) {
  double power = 1 - x / (1 << 20);
  for (int i = 0; i < 20; ++i) power *= power;
  return power;
}

// Returns the probability that a normally distributed number is above x, for x from -6 to 6.
double ProbabilityAbove(double x) {
  constexpr double kRootOfTwoPi = 2.5066282746310002;
  constexpr int kSteps = 600;
  const double width = (6 - x) / kSteps;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double at = x + (i + 0.5) * width;
    sum += ExpOfMinus(at * at / 2);
  }
  return sum * width / kRootOfTwoPi;
}

// Returns the number above which a normally distributed number is with this probability.
double QuantileAbove(double probability) {
  double low = -6, high = 6;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (ProbabilityAbove(middle) > probability ? low : high) = middle;
  }
  return low;
}

int64_t Tenth(int64_t experts) { return std::max<int64_t>((experts + 5) / 10, 1); }

}  // namespace

absl::StatusOr<double> SkewFactor(int64_t experts, int64_t used, double share) {
  const auto tenth = static_cast<double>(Tenth(experts));
  const auto rest = static_cast<double>(experts) - tenth;
  // How often a token chooses one of the tenth, and one of the others.
  const double often = static_cast<double>(used) * share / tenth;
  const double seldom = static_cast<double>(used) * (1 - share) / rest;
  // Beyond a half the logits would have to have another mean.
  if (often >= 0.49) {
    return Invalid(100 * share, " % is too much: where a token chooses ", used, " of ", experts,
                   " experts, a tenth of them can get at most ",
                   static_cast<int64_t>(49 * tenth / static_cast<double>(used)),
                   " % of the choices");
  }
  if (seldom >= often) {
    return Invalid(100 * share, " % is too little: a tenth of ", experts, " experts gets ",
                   static_cast<int64_t>(100 * tenth / (tenth + rest)),
                   " % of the choices if none is preferred");
  }
  return QuantileAbove(seldom) / QuantileAbove(often);
}

std::vector<float> SkewedRows(const std::string& router, int64_t experts, double factor) {
  std::vector<int64_t> order(static_cast<size_t>(experts));
  std::iota(order.begin(), order.end(), 0);
  const RandomValues random(0, router + " skew");
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return random.Bits(static_cast<uint64_t>(a)) < random.Bits(static_cast<uint64_t>(b));
  });
  std::vector<float> rows(static_cast<size_t>(experts), static_cast<float>(1 / factor));
  for (int64_t i = 0; i < Tenth(experts); ++i) rows[static_cast<size_t>(order[i])] = 1;
  return rows;
}

}  // namespace trine
