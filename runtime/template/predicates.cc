#include "runtime/template/predicates.h"

#include "absl/status/status.h"
#include "runtime/template/ast.h"
#include "runtime/template/characters.h"
#include "runtime/template/operators.h"
#include "runtime/template/words.h"

namespace trine::jinja {
namespace {

using Kind = Value::Kind;
using Result = absl::StatusOr<bool>;

template <Kind kKind>
Result Is(const Value& operand, const Arguments&, Budget&) {
  return operand.is(kKind);
}
Result Defined(const Value& operand, const Arguments&, Budget&) { return !operand.undefined(); }
Result Number(const Value& operand, const Arguments&, Budget&) { return operand.number(); }
Result Iterable(const Value& operand, const Arguments&, Budget&) {
  return operand.is(Kind::kList) || operand.is(Kind::kString) || operand.is(Kind::kDict);
}
template <bool kValue>
Result IsBool(const Value& operand, const Arguments&, Budget&) {
  return operand.is(Kind::kBool) && operand.boolean() == kValue;
}
template <Text (*kMap)(const Text&)>
Result Unchanged(const Value& operand, const Arguments&, Budget&) {
  return operand.is(Kind::kString) && kMap(operand.text()).bytes() == operand.text().bytes();
}

Result Divisible(const Value& operand, int64_t by) {
  if (!operand.is(Kind::kInt)) {
    return Wrong(KindName(operand.kind()), " is no integer");
  }
  if (by == 0) return Wrong("a division by zero");
  return by == -1 || operand.integer() % by == 0;
}
Result Even(const Value& operand, const Arguments&, Budget&) { return Divisible(operand, 2); }
Result Odd(const Value& operand, const Arguments&, Budget&) {
  const Result even = Divisible(operand, 2);
  return even.ok() ? Result(!*even) : even;
}

// The one argument some tests need.
absl::StatusOr<const Value*> Other(const Arguments& arguments) {
  if (arguments.positional.size() == 1) return &arguments.positional[0];
  return Wrong("one argument is needed");
}
Result DivisibleBy(const Value& operand, const Arguments& arguments, Budget&) {
  const auto other = Other(arguments);
  if (!other.ok()) return other.status();
  if (!(*other)->is(Kind::kInt)) return Wrong("the divisor is no integer");
  return Divisible(operand, (*other)->integer());
}
template <Operator kOperator>
Result Compares(const Value& operand, const Arguments& arguments, Budget& budget) {
  const auto other = Other(arguments);
  if (!other.ok()) return other.status();
  const auto result = Apply(kOperator, operand, **other, budget);
  if (!result.ok()) return result.status();
  return result->boolean();
}

struct Entry {
  std::string_view name;
  Result (*test)(const Value&, const Arguments&, Budget&);
};
constexpr Entry kTests[] = {
    {"boolean", Is<Kind::kBool>},
    {"callable", Is<Kind::kFunction>},
    {"defined", Defined},
    {"divisibleby", DivisibleBy},
    {"eq", Compares<Operator::kEqual>},
    {"equalto", Compares<Operator::kEqual>},
    {"even", Even},
    {"false", IsBool<false>},
    {"float", Is<Kind::kFloat>},
    {"ge", Compares<Operator::kGreaterEqual>},
    {"greaterthan", Compares<Operator::kGreater>},
    {"gt", Compares<Operator::kGreater>},
    {"in", Compares<Operator::kIn>},
    {"integer", Is<Kind::kInt>},
    {"iterable", Iterable},
    {"le", Compares<Operator::kLessEqual>},
    {"lessthan", Compares<Operator::kLess>},
    {"lower", Unchanged<Lower>},
    {"lt", Compares<Operator::kLess>},
    {"mapping", Is<Kind::kDict>},
    {"ne", Compares<Operator::kNotEqual>},
    {"none", Is<Kind::kNone>},
    {"number", Number},
    {"odd", Odd},
    {"sequence", Iterable},
    {"string", Is<Kind::kString>},
    {"true", IsBool<true>},
    {"undefined", Is<Kind::kUndefined>},
    {"upper", Unchanged<Upper>},
};

}  // namespace

absl::StatusOr<bool> ApplyTest(std::string_view name, const Value& operand,
                               const Arguments& arguments, Budget& budget) {
  for (const Entry& entry : kTests) {
    if (entry.name != name) continue;
    if (absl::Status s = budget.Work(operand.size()); !s.ok()) return s;
    return entry.test(operand, arguments, budget);
  }
  return Wrong("there is no test \"", name, "\"");
}

}  // namespace trine::jinja
