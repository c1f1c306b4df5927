// Implements the operators (`==`, `<`, `+`, `in` and others), subscripts, sorting and arithmetic.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/template/parse/ast.h"
#include "runtime/template/values/budget.h"
#include "runtime/template/values/value.h"

namespace trine::jinja {

// Returns whether two values are equal. Compares numbers and booleans by value, lists and dicts by
// contents. none equals undefined.
absl::StatusOr<bool> Equal(const Value& a, const Value& b, Budget& budget);

// Returns a number below, equal to or above 0. Compares numbers and booleans, or two strings.
absl::StatusOr<int> Compare(const Value& a, const Value& b, bool case_sensitive, Budget& budget);

// Computes `left op right`.
absl::StatusOr<Value> Apply(Operator op, const Value& left, const Value& right, Budget& budget);
absl::StatusOr<Value> Negated(const Value& value);

// Evaluates object[index] and object.name. Returns undefined for a missing member.
absl::StatusOr<Value> Index(const Value& object, const Value& index, Budget& budget);
// Evaluates object[start:stop:step]. A bound that was left out is undefined.
absl::StatusOr<Value> Slice(const Value& object, const Value& start, const Value& stop,
                            const Value& step, Budget& budget);

// Sorts stably by the `key` of each item. Fails with INVALID_ARGUMENT if two keys have no order.
absl::StatusOr<Value> Sorted(const std::vector<Value>& items,
                             const std::function<absl::StatusOr<Value>(const Value&)>& key,
                             bool case_sensitive, bool reverse, Budget& budget);

// Arithmetic. Integers have 64 bits, and overflow is an error; booleans are 0 and 1.
bool IsNumeric(const Value& value);  // returns whether it is a number or a boolean
double AsDouble(const Value& value);

// Returns a number below, equal to or above 0. REQUIRES: both are numeric.
int CompareNumbers(const Value& a, const Value& b);

// Computes +, -, *, /, //, %, ** of numeric values. Fails with INVALID_ARGUMENT if a division is by
// zero or the result is not a number.
absl::StatusOr<Value> Calculate(Operator op, const Value& left, const Value& right);

// Truncates a float to an integer. Fails with INVALID_ARGUMENT if it is too large or NaN.
absl::StatusOr<Value> Truncated(double value);

}  // namespace trine::jinja
