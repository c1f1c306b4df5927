// Numbers. Integers have 64 bits, and say so where that is not enough; a boolean counts as 0 or 1.
#ifndef TRINE_RUNTIME_TEMPLATE_ARITHMETIC_H_
#define TRINE_RUNTIME_TEMPLATE_ARITHMETIC_H_

#include "absl/status/statusor.h"
#include "runtime/template/ast.h"
#include "runtime/template/value.h"

namespace trine::jinja {

bool IsNumeric(const Value& value);  // or a boolean
double AsDouble(const Value& value);

// Below, at or above 0. Both are numeric.
int CompareNumbers(const Value& a, const Value& b);

// +, -, *, /, //, %, ** of numeric values. INVALID_ARGUMENT for a division by zero, and for what
// has no number as its result.
absl::StatusOr<Value> Calculate(Operator op, const Value& left, const Value& right);

// A float cut to an integer. INVALID_ARGUMENT where there is none near.
absl::StatusOr<Value> Truncated(double value);

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_ARITHMETIC_H_
