
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "runtime/template/eval/builtins.h"
#include "runtime/template/eval/operators.h"
#include "runtime/template/parse/ast.h"
#include "runtime/template/values/budget.h"
#include "runtime/template/values/print.h"
#include "runtime/template/values/text.h"

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
  if (!IsNumeric(operand)) return Wrong(KindName(operand.kind()), " is no number");
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
  if (!operand.is(Kind::kString)) return Wrong(KindName(operand.kind()), " can't become a float");
  if (absl::SimpleAtod(operand.text().bytes(), &real)) return Value::Float(real);
  return otherwise == nullptr ? Value::Float(0) : *otherwise;
}

Result ToBool(const Value& operand, const Arguments&, Budget&) {
  return Value::Bool(operand.Truthy());
}

// Rounds to `precision` digits after the point, halves away from zero. Returns a float.
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

Result ItemsFilter(const Value& operand, const Arguments& arguments, Budget& budget) {
  if (operand.undefined()) return budget.OfList({});
  if (absl::Status s = WantsDict(operand); !s.ok()) return s;
  return Items(operand, arguments, budget);
}

Result DictSort(const Value& operand, const Arguments& arguments, Budget& budget) {
  if (absl::Status s = WantsDict(operand); !s.ok()) return s;
  return SortedItems(operand, arguments, budget);
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

constexpr int64_t kMaxIndent = 1000;

absl::Status WantsString(const Value& operand) {
  if (operand.is(Kind::kString)) return absl::OkStatus();
  return Wrong(KindName(operand.kind()), " is no string");
}

constexpr char kCapitalize[] = "capitalize", kLower[] = "lower", kReplace[] = "replace",
               kStrip[] = "strip", kTitle[] = "title", kUpper[] = "upper";

// Applies a filter that is also a method.
template <const char* kName>
Result MethodFilter(const Value& operand, const Arguments& arguments, Budget& budget) {
  if (absl::Status s = WantsString(operand); !s.ok()) return s;
  const auto method = FindMethod(operand, kName, budget);
  if (!method.ok()) return method;
  return method->function()(budget, arguments);
}

Result StringFilter(const Value& operand, const Arguments&, Budget& budget) {
  if (operand.is(Kind::kString)) return operand;
  if (operand.undefined() || operand.none()) return Wrong(KindName(operand.kind()), " is no text");
  auto text = Printed(operand, budget);
  if (!text.ok()) return text.status();
  return budget.String(*std::move(text));
}

absl::StatusOr<JsonStyle> ReadStyle(const Arguments& arguments) {
  constexpr size_t kNamedAlone = static_cast<size_t>(-1);
  JsonStyle style;
  const auto indent = IntArgument(arguments, kNamedAlone, "indent", 0);
  if (!indent.ok()) return indent.status();
  if (*indent < 0 || *indent > kMaxIndent) {
    return Wrong("the indent is not within 0 and ", kMaxIndent);
  }
  style.indent = static_cast<int>(*indent);
  const auto ascii = BoolArgument(arguments, kNamedAlone, "ensure_ascii", false);
  if (!ascii.ok()) return ascii.status();
  style.ascii = *ascii;
  const auto sort_keys = BoolArgument(arguments, kNamedAlone, "sort_keys", false);
  if (!sort_keys.ok()) return sort_keys.status();
  style.sort_keys = *sort_keys;
  const Value* separators = arguments.FindNamed("separators");
  if (separators == nullptr || separators->none()) return style;
  if (!separators->is(Kind::kList) || separators->size() != 2 ||
      !separators->list()[0].is(Kind::kString) || !separators->list()[1].is(Kind::kString)) {
    return Wrong("the separators must be two strings");
  }
  style.custom_separators = true;
  style.item_separator = separators->list()[0].text();
  style.key_separator = separators->list()[1].text();
  return style;
}

Result ToJson(const Value& operand, const Arguments& arguments, Budget& budget) {
  const auto style = ReadStyle(arguments);
  if (!style.ok()) return style.status();
  Text text;
  if (absl::Status s = AppendJson(operand, *style, budget, &text); !s.ok()) return s;
  return budget.String(std::move(text));
}

Result Indent(const Value& operand, const Arguments& arguments, Budget& budget) {
  if (absl::Status s = WantsString(operand); !s.ok()) return s;
  const auto width = IntArgument(arguments, 0, "width", 4);
  if (!width.ok()) return width.status();
  const auto first = BoolArgument(arguments, 1, "first", false);
  if (!first.ok()) return first.status();
  const auto blank = BoolArgument(arguments, 2, "blank", false);
  if (!blank.ok()) return blank.status();
  if (*width < 0 || *width > kMaxIndent) return Wrong("the width is not within 0 and ", kMaxIndent);
  const Text& text = operand.text();
  const std::string margin(static_cast<size_t>(*width), ' ');
  Text out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.bytes().find('\n', at), text.size());
    const bool indented = (at > 0 || *first) && (end > at || *blank);
    const size_t before = out.memory();
    if (indented) out.Append(margin, false);
    out.Append(text, at, std::min(end + 1, text.size()));
    if (absl::Status s = budget.Grown(out, before); !s.ok()) return s;
    at = end + 1;
  }
  return budget.String(std::move(out));
}

constexpr NamedOperation kFilters[] = {
    {"abs", Abs},
    {"attr", Attr},
    {"bool", ToBool},
    {"capitalize", MethodFilter<kCapitalize>},
    {"count", Length},
    {"d", Default},
    {"default", Default},
    {"dictsort", DictSort},
    {"float", ToFloat},
    {"get", GetFilter},
    {"indent", Indent},
    {"int", ToInt},
    {"items", ItemsFilter},
    {"length", Length},
    {"lower", MethodFilter<kLower>},
    {"replace", MethodFilter<kReplace>},
    {"round", Round},
    {"safe", Safe},
    {"string", StringFilter},
    {"title", MethodFilter<kTitle>},
    {"tojson", ToJson},
    {"trim", MethodFilter<kStrip>},
    {"upper", MethodFilter<kUpper>},
};

using Verdict = absl::StatusOr<bool>;

template <Kind kKind>
Verdict Is(const Value& operand, const Arguments&, Budget&) {
  return operand.is(kKind);
}
Verdict Defined(const Value& operand, const Arguments&, Budget&) { return !operand.undefined(); }
Verdict Number(const Value& operand, const Arguments&, Budget&) { return operand.number(); }
Verdict Iterable(const Value& operand, const Arguments&, Budget&) {
  return operand.is(Kind::kList) || operand.is(Kind::kString) || operand.is(Kind::kDict);
}
template <bool kValue>
Verdict IsBool(const Value& operand, const Arguments&, Budget&) {
  return operand.is(Kind::kBool) && operand.boolean() == kValue;
}
template <Text (*kMap)(const Text&)>
Verdict Unchanged(const Value& operand, const Arguments&, Budget&) {
  return operand.is(Kind::kString) && kMap(operand.text()).bytes() == operand.text().bytes();
}

Verdict Divisible(const Value& operand, int64_t by) {
  if (!operand.is(Kind::kInt)) return Wrong(KindName(operand.kind()), " is no integer");
  if (by == 0) return Wrong("a division by zero");
  return by == -1 || operand.integer() % by == 0;
}
Verdict Even(const Value& operand, const Arguments&, Budget&) { return Divisible(operand, 2); }
Verdict Odd(const Value& operand, const Arguments&, Budget&) {
  const Verdict even = Divisible(operand, 2);
  return even.ok() ? Verdict(!*even) : even;
}

// Returns the single argument of a test that needs one.
absl::StatusOr<const Value*> Other(const Arguments& arguments) {
  if (arguments.positional.size() == 1) return &arguments.positional[0];
  return Wrong("one argument is needed");
}
Verdict DivisibleBy(const Value& operand, const Arguments& arguments, Budget&) {
  const auto other = Other(arguments);
  if (!other.ok()) return other.status();
  if (!(*other)->is(Kind::kInt)) return Wrong("the divisor is no integer");
  return Divisible(operand, (*other)->integer());
}
template <Operator kOperator>
Verdict Compares(const Value& operand, const Arguments& arguments, Budget& budget) {
  const auto other = Other(arguments);
  if (!other.ok()) return other.status();
  const auto result = Apply(kOperator, operand, **other, budget);
  if (!result.ok()) return result.status();
  return result->boolean();
}

struct PredicateEntry {
  std::string_view name;
  Verdict (*test)(const Value&, const Arguments&, Budget&);
};
constexpr PredicateEntry kTests[] = {
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

absl::StatusOr<Value> ApplyFilter(std::string_view name, const Value& operand,
                                  const Arguments& arguments, Budget& budget) {
  Operation filter = FindIn(kFilters, name);
  if (filter == nullptr) filter = FindListFilter(name);
  if (filter == nullptr) return Wrong("there is no filter \"", name, "\"");
  if (absl::Status s = budget.Work(operand.size() + arguments.size()); !s.ok()) return s;
  // Filters can call filters: map does.
  if (absl::Status s = budget.Enter(); !s.ok()) return s;
  const absl::Cleanup leave = [&budget] { budget.Leave(); };
  auto result = filter(operand, arguments, budget);
  if (result.ok() || result.status().code() != absl::StatusCode::kInvalidArgument) return result;
  return Wrong(name, ": ", result.status().message());
}

absl::StatusOr<bool> ApplyTest(std::string_view name, const Value& operand,
                               const Arguments& arguments, Budget& budget) {
  for (const PredicateEntry& entry : kTests) {
    if (entry.name != name) continue;
    if (absl::Status s = budget.Work(operand.size()); !s.ok()) return s;
    return entry.test(operand, arguments, budget);
  }
  return Wrong("there is no test \"", name, "\"");
}

}  // namespace trine::jinja
