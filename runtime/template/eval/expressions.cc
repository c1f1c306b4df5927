#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "runtime/template/eval/builtins.h"
#include "runtime/template/eval/interpreter.h"
#include "runtime/template/eval/operators.h"
#include "runtime/template/values/budget.h"

namespace trine::jinja {
namespace {

using Kind = Value::Kind;

// Named arguments are searched linearly.
constexpr size_t kMaxNamedArguments = 256;

// Returns the name of an expression in messages.
std::string Describe(const Expr& expr) {
  if (expr.kind == Expr::Kind::kName || expr.kind == Expr::Kind::kAttribute) {
    return Words("\"", expr.name, "\"");
  }
  return "this";
}

}  // namespace

absl::StatusOr<Value> Interpreter::Evaluate(const Expr& expr, Scope& scope) {
  absl::Status status = budget_.Step();
  if (status.ok()) status = budget_.Enter();
  if (!status.ok()) {
    if (!error_offset_) error_offset_ = expr.offset;
    return status;
  }
  const absl::Cleanup leave = [this] { budget_.Leave(); };
  Result result = EvaluateInner(expr, scope);
  if (!result.ok() && !error_offset_) error_offset_ = expr.offset;
  return result;
}

absl::StatusOr<Value> Interpreter::EvaluateInner(const Expr& expr, Scope& scope) {
  switch (expr.kind) {
    case Expr::Kind::kLiteral:
      return expr.literal;
    case Expr::Kind::kName:
      return scope.Get(expr.name);
    case Expr::Kind::kList:
      return EvaluateList(expr, scope);
    case Expr::Kind::kDict:
      return EvaluateDict(expr, scope);
    case Expr::Kind::kSlice:
      return EvaluateSlice(expr, scope);
    case Expr::Kind::kCall:
      return EvaluateCall(expr, scope);
    default:
      break;
  }
  Result first = Evaluate(*expr.children[expr.kind == Expr::Kind::kConditional ? 1 : 0], scope);
  if (!first.ok()) return first;
  switch (expr.kind) {
    case Expr::Kind::kAttribute:
      return Index(*first, Value::String(expr.name), budget_);
    case Expr::Kind::kFilter: {
      const auto arguments = EvaluateArguments(expr.arguments, scope);
      if (!arguments.ok()) return arguments.status();
      return ApplyFilter(expr.name, *first, *arguments, budget_);
    }
    case Expr::Kind::kTest: {
      const auto arguments = EvaluateArguments(expr.arguments, scope);
      if (!arguments.ok()) return arguments.status();
      const auto holds = ApplyTest(expr.name, *first, *arguments, budget_);
      if (!holds.ok()) return holds.status();
      return Value::Bool(*holds != expr.negated);
    }
    case Expr::Kind::kNot:
      return Value::Bool(!first->Truthy());
    case Expr::Kind::kNegate:
      return Negated(*first);
    case Expr::Kind::kPlus:
      return Apply(Operator::kAdd, Value::Int(0), *first, budget_);
    case Expr::Kind::kAnd:
      return first->Truthy() ? Evaluate(*expr.children[1], scope) : first;
    case Expr::Kind::kOr:
      return first->Truthy() ? first : Evaluate(*expr.children[1], scope);
    case Expr::Kind::kConditional:
      if (first->Truthy()) return Evaluate(*expr.children[0], scope);
      return expr.children[2] == nullptr ? Value() : Evaluate(*expr.children[2], scope);
    default:
      break;
  }
  const Result second = Evaluate(*expr.children[1], scope);
  if (!second.ok()) return second;
  return expr.kind == Expr::Kind::kIndex ? Index(*first, *second, budget_)
                                         : Apply(expr.op, *first, *second, budget_);
}

absl::StatusOr<Value> Interpreter::EvaluateList(const Expr& expr, Scope& scope) {
  std::vector<Value> items;
  for (const ExprPtr& child : expr.children) {
    Result item = Evaluate(*child, scope);
    if (!item.ok()) return item;
    items.push_back(*std::move(item));
  }
  return budget_.OfList(std::move(items));
}

absl::StatusOr<Value> Interpreter::EvaluateDict(const Expr& expr, Scope& scope) {
  Dict dict;
  for (size_t i = 0; i + 1 < expr.children.size(); i += 2) {
    const Result key = Evaluate(*expr.children[i], scope);
    if (!key.ok()) return key;
    if (!key->is(Kind::kString)) {
      return Wrong("the key of a dict is ", KindName(key->kind()), ", not a string");
    }
    Result value = Evaluate(*expr.children[i + 1], scope);
    if (!value.ok()) return value;
    if (absl::Status s = budget_.Set(key->text(), *std::move(value), &dict); !s.ok()) return s;
  }
  return budget_.OfDict(std::move(dict));
}

absl::StatusOr<Value> Interpreter::EvaluateSlice(const Expr& expr, Scope& scope) {
  Value parts[4];
  for (size_t i = 0; i < 4; ++i) {
    if (expr.children[i] == nullptr) continue;
    Result part = Evaluate(*expr.children[i], scope);
    if (!part.ok()) return part;
    parts[i] = *std::move(part);
  }
  return Slice(parts[0], parts[1], parts[2], parts[3], budget_);
}

absl::StatusOr<Value> Interpreter::EvaluateCall(const Expr& expr, Scope& scope) {
  const Expr& callee = *expr.children[0];
  const Result function = Evaluate(callee, scope);
  if (!function.ok()) return function;
  if (!function->is(Kind::kFunction)) {
    return Wrong(Describe(callee), " is ", KindName(function->kind()), ", which can't be called");
  }
  const auto arguments = EvaluateArguments(expr.arguments, scope);
  if (!arguments.ok()) return arguments.status();
  return function->function()(budget_, *arguments);
}

absl::StatusOr<Arguments> Interpreter::EvaluateArguments(const std::vector<Argument>& arguments,
                                                         Scope& scope) {
  Arguments out;
  for (const Argument& argument : arguments) {
    Result value = Evaluate(*argument.value, scope);
    if (!value.ok()) return value.status();
    if (absl::Status s = AddArgument(argument, *std::move(value), &out); !s.ok()) return s;
  }
  return out;
}

absl::Status Interpreter::AddArgument(const Argument& argument, Value value, Arguments* out) {
  constexpr int64_t kBytes = sizeof(std::pair<Text, Value>);
  const auto add_named = [&](const Text& name, const Value& given) -> absl::Status {
    if (out->named.size() >= kMaxNamedArguments) {
      return TooMuch("a call has more than ", kMaxNamedArguments, " named arguments");
    }
    const int64_t bytes = static_cast<int64_t>(name.memory());
    if (absl::Status s = budget_.Allocate(kBytes + bytes); !s.ok()) return s;
    // The name is compared with every other name.
    const int64_t others = static_cast<int64_t>(out->named.size());
    if (absl::Status s = budget_.Work(bytes * (1 + others)); !s.ok()) return s;
    if (out->FindNamed(name.bytes()) != nullptr) return Wrong(name.bytes(), " is given twice");
    out->named.emplace_back(name, given);
    return absl::OkStatus();
  };
  switch (argument.kind) {
    case Argument::Kind::kPositional:
      out->positional.push_back(std::move(value));
      return budget_.Allocate(kBytes);
    case Argument::Kind::kNamed:
      return add_named(Text(argument.name), value);
    case Argument::Kind::kSpread:
      if (!value.is(Kind::kList)) return Wrong(KindName(value.kind()), " behind a * is no list");
      if (absl::Status s = budget_.Allocate(kBytes * value.size()); !s.ok()) return s;
      out->positional.insert(out->positional.end(), value.list().begin(), value.list().end());
      return absl::OkStatus();
    case Argument::Kind::kSpreadNamed:
      if (!value.is(Kind::kDict)) return Wrong(KindName(value.kind()), " behind a ** is no dict");
      for (const Dict::Entry& entry : value.dict().entries()) {
        if (absl::Status s = add_named(entry.key, entry.value); !s.ok()) return s;
      }
      return absl::OkStatus();
  }
  return absl::InternalError("an argument of no kind");
}

}  // namespace trine::jinja
