// Makes expressions for the decimal texts of numbers within bounds. Compares bounds in decimal, not
// in floating point.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar/grammar.h"

namespace trine::constraint {

// The number digits / 10^places.
struct Decimal {
  int64_t digits = 0;
  int32_t places = 0;
};

// Converts the shortest text of `value` exactly. Returns nullopt if its digits do not fit in an
// int64_t, or if it has more than 18 decimal places.
std::optional<Decimal> DecimalOf(double value);
// Returns -1 if a < b, 0 if they are equal, and 1 if a > b.
int CompareDecimals(const Decimal& a, const Decimal& b);

struct NumberBound {
  Decimal value;
  bool exclusive = false;
};

struct NumberRange {
  bool whole = false;  // only integers
  std::optional<NumberBound> min;
  std::optional<NumberBound> max;
  int64_t multiple_of = 1;  // other than 1: only integers that are multiples of it
};

// Returns the texts of the numbers in `range`, without exponents. Integers have at most 15 digits,
// unless the bounds exclude all such integers. Other numbers have at most 15 digits in all and 6
// decimal places, or one place more than the bounds have. Returns an empty choice if `range` is
// empty.
absl::StatusOr<ExprPtr> NumberText(const NumberRange& range);

}  // namespace trine::constraint
