// Numbers within bounds, written in decimal. Exactly those: bounds are compared in decimal, not in
// floating point.
#ifndef TRINE_RUNTIME_CONSTRAINT_SCHEMA_NUMBERS_H_
#define TRINE_RUNTIME_CONSTRAINT_SCHEMA_NUMBERS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar.h"

namespace trine::constraint {

// value = digits / 10^places.
struct Decimal {
  int64_t digits = 0;
  int32_t places = 0;
};

// Of a double, exactly as its shortest text says; nothing when that takes more than an int64_t.
std::optional<Decimal> DecimalOf(double value);
// -1, 0 or 1.
int CompareDecimals(const Decimal& a, const Decimal& b);

struct NumberBound {
  Decimal value;
  bool exclusive = false;
};

struct NumberRange {
  bool whole = false;  // integers alone
  std::optional<NumberBound> min;
  std::optional<NumberBound> max;
  int64_t multiple_of = 1;  // other than 1: only whole multiples of it are written
};

// Whole numbers have at most 15 digits unless the bounds ask for more; others at most 15 digits in
// all, 6 of them behind the point unless the bounds have more. No exponents. An expression without
// alternatives when no number is in the range.
absl::StatusOr<ExprPtr> NumberText(const NumberRange& range);

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_SCHEMA_NUMBERS_H_
