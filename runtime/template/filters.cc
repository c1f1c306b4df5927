#include "runtime/template/filters.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "runtime/template/arguments.h"
#include "runtime/template/arithmetic.h"
#include "runtime/template/ast.h"
#include "runtime/template/characters.h"
#include "runtime/template/methods.h"
#include "runtime/template/operators.h"
#include "runtime/template/words.h"

namespace trine::jinja {
namespace {

using Kind = Value::Kind;
using Result = absl::StatusOr<Value>;

Result Safe(const Value& operand, const Arguments&, Budget&) { return operand; }

Result Default(const Value& operand, const Arguments& arguments, Budget&) {
  const auto falsy_too = BoolArgument(arguments, 1, "boolean", false);
  if (!falsy_too.ok()) return falsy_too.status();
  if (!operand.undefined() && (!*falsy_too || operand.Truthy())) return operand;
  const Value* value = arguments.Find(0, "default_value");
  return value == nullptr ? Value::String("") : *value;
}

Result Length(const Value& operand, const Arguments&, Budget&) {
  if (operand.is(Kind::kString)) {
    return Value::Int(static_cast<int64_t>(CountCharacters(operand.text().bytes())));
  }
  if (operand.is(Kind::kList) || operand.is(Kind::kDict)) return Value::Int(operand.size());
  return Wrong(KindName(operand.kind()), " has no length");
}

Result Abs(const Value& operand, const Arguments&, Budget&) {
  if (!IsNumeric(operand)) {
    return Wrong(KindName(operand.kind()), " is no number");
  }
  return CompareNumbers(operand, Value::Int(0)) < 0 ? Negated(operand) : operand;
}

Result ToInt(const Value& operand, const Arguments& arguments, Budget&) {
  const Value* otherwise = arguments.Find(0, "default");
  int64_t integer = 0;
  double real = 0;
  switch (operand.kind()) {
    case Kind::kInt:
      return operand;
    case Kind::kBool:
      return Value::Int(operand.boolean() ? 1 : 0);
    case Kind::kFloat:
      return Truncated(operand.real());
    case Kind::kString:
      if (absl::SimpleAtoi(operand.text().bytes(), &integer)) return Value::Int(integer);
      if (absl::SimpleAtod(operand.text().bytes(), &real)) return Truncated(real);
      return otherwise == nullptr ? Value::Int(0) : *otherwise;
    default:
      return Wrong(KindName(operand.kind()), " can't become an integer");
  }
}

Result ToFloat(const Value& operand, const Arguments& arguments, Budget&) {
  const Value* otherwise = arguments.Find(0, "default");
  double real = 0;
  if (IsNumeric(operand)) return Value::Float(AsDouble(operand));
  if (!operand.is(Kind::kString)) {
    return Wrong(KindName(operand.kind()), " can't become a float");
  }
  if (absl::SimpleAtod(operand.text().bytes(), &real)) return Value::Float(real);
  return otherwise == nullptr ? Value::Float(0) : *otherwise;
}

Result ToBool(const Value& operand, const Arguments&, Budget&) {
  return Value::Bool(operand.Truthy());
}

// Away from zero in the middle, to so many digits behind the point; always a float.
Result Round(const Value& operand, const Arguments& arguments, Budget&) {
  const auto digits = IntArgument(arguments, 0, "precision", 0);
  if (!digits.ok()) return digits.status();
  const auto method = TextArgument(arguments, 1, "method");
  if (!method.ok()) return method.status();
  if (!IsNumeric(operand) || *digits < 0 || *digits > 15) {
    return Wrong("round wants a number, and 0 to 15 digits");
  }
  const double scale = std::pow(10.0, static_cast<double>(*digits));
  const double scaled = AsDouble(operand) * scale;
  const std::string_view how = *method == nullptr ? "common" : std::string_view((*method)->bytes());
  if (how == "floor") return Value::Float(std::floor(scaled) / scale);
  if (how == "ceil") return Value::Float(std::ceil(scaled) / scale);
  if (how == "common") return Value::Float(std::round(scaled) / scale);
  return Wrong("round is by \"common\", \"floor\" or \"ceil\"");
}

absl::Status WantsDict(const Value& operand) {
  if (operand.is(Kind::kDict)) return absl::OkStatus();
  return Wrong(KindName(operand.kind()), " is no dict");
}

Result ItemsFilter(const Value& operand, const Arguments&, Budget& budget) {
  if (operand.undefined()) return budget.OfList({});
  if (absl::Status s = WantsDict(operand); !s.ok()) return s;
  return Items(operand.dict(), budget);
}

Result DictSort(const Value& operand, const Arguments& arguments, Budget& budget) {
  if (absl::Status s = WantsDict(operand); !s.ok()) return s;
  return SortedItems(operand.dict(), arguments, budget);
}

Result Attr(const Value& operand, const Arguments& arguments, Budget& budget) {
  const auto name = NeededText(arguments, 0, "name");
  if (!name.ok()) return name.status();
  return Index(operand, Value::String(**name), budget);
}

Result GetFilter(const Value& operand, const Arguments& arguments, Budget& budget) {
  if (absl::Status s = WantsDict(operand); !s.ok()) return s;
  const auto get = FindMethod(operand, "get", budget);
  if (!get.ok()) return get;
  return get->function()(budget, arguments);
}

constexpr FilterEntry kFilters[] = {
    {"abs", Abs},       {"attr", Attr},       {"bool", ToBool},       {"count", Length},
    {"d", Default},     {"default", Default}, {"dictsort", DictSort}, {"float", ToFloat},
    {"get", GetFilter}, {"int", ToInt},       {"items", ItemsFilter}, {"length", Length},
    {"round", Round},   {"safe", Safe},
};

Filter FindFilter(std::string_view name) {
  for (const FilterEntry& entry : kFilters) {
    if (entry.name == name) return entry.filter;
  }
  const Filter text = FindTextFilter(name);
  return text != nullptr ? text : FindListFilter(name);
}

}  // namespace

absl::StatusOr<Value> ApplyFilter(std::string_view name, const Value& operand,
                                  const Arguments& arguments, Budget& budget) {
  const Filter filter = FindFilter(name);
  if (filter == nullptr) {
    return Wrong("there is no filter \"", name, "\"");
  }
  if (absl::Status s = budget.Work(operand.size() + arguments.size()); !s.ok()) return s;
  // Filters call filters: map does.
  if (absl::Status s = budget.Enter(); !s.ok()) return s;
  const absl::Cleanup leave = [&budget] { budget.Leave(); };
  auto result = filter(operand, arguments, budget);
  if (result.ok() || result.status().code() != absl::StatusCode::kInvalidArgument) return result;
  return Wrong(name, ": ", result.status().message());
}

}  // namespace trine::jinja
