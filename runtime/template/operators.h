// What `==`, `<`, `+`, `in` and their like mean.
#ifndef TRINE_RUNTIME_TEMPLATE_OPERATORS_H_
#define TRINE_RUNTIME_TEMPLATE_OPERATORS_H_

#include "absl/status/statusor.h"
#include "runtime/template/ast.h"
#include "runtime/template/budget.h"
#include "runtime/template/value.h"

namespace trine::jinja {

// Numbers and booleans by size, lists and dicts by what is in them; none equals undefined.
absl::StatusOr<bool> Equal(const Value& a, const Value& b, Budget& budget);

// Below, at or above 0. For numbers, booleans, and strings among themselves.
absl::StatusOr<int> Compare(const Value& a, const Value& b, bool case_sensitive, Budget& budget);

absl::StatusOr<Value> Apply(Operator op, const Value& left, const Value& right, Budget& budget);
absl::StatusOr<Value> Negated(const Value& value);

// object[index], object.name: what is not there is undefined.
absl::StatusOr<Value> Index(const Value& object, const Value& index, Budget& budget);
// Each bound undefined where it was left out.
absl::StatusOr<Value> Slice(const Value& object, const Value& start, const Value& stop,
                            const Value& step, Budget& budget);

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_OPERATORS_H_
