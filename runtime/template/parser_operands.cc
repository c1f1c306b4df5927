// What operators stand between: literals, names, members, indices, calls.
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "runtime/template/parser.h"

namespace trine::jinja {
namespace {

using Kind = Token::Kind;

}  // namespace

Parser::Parsed Parser::ParsePostfix() {
  auto object = ParsePrimary();
  while (object.ok()) {
    const size_t offset = Peek().offset;
    if (IsOperator("(")) {
      ExprPtr call = New(Expr::Kind::kCall, offset);
      if (absl::Status s = ParseArguments(&call->arguments); !s.ok()) return s;
      call->children.push_back(*std::move(object));
      object = Finish(std::move(call));
    } else if (IsOperator("[")) {
      object = ParseSubscript(*std::move(object));
    } else if (TakeOperator(".")) {
      const bool index = Peek().kind == Kind::kInteger;
      ExprPtr member = New(index ? Expr::Kind::kIndex : Expr::Kind::kAttribute, offset);
      member->children.push_back(*std::move(object));
      if (index) {
        auto number = ParseNumber();
        if (!number.ok()) return number;
        member->children.push_back(*std::move(number));
      } else {
        auto name = ExpectName("the name of a member");
        if (!name.ok()) return name.status();
        member->name = *std::move(name);
      }
      object = Finish(std::move(member));
    } else {
      break;
    }
  }
  return object;
}

Parser::Parsed Parser::ParseSubscript(ExprPtr object) {
  const size_t offset = Peek().offset;
  if (absl::Status s = ExpectOperator("["); !s.ok()) return s;
  ExprPtr parts[3];
  size_t n = 0;
  bool slice = false;
  while (true) {
    if (!IsOperator(":") && !IsOperator("]")) {
      auto part = ParseExpression();
      if (!part.ok()) return part;
      parts[n] = *std::move(part);
    }
    if (n == 2 || !TakeOperator(":")) break;
    slice = true;
    ++n;
  }
  if (!slice && parts[0] == nullptr) return Unexpected("an index");
  if (absl::Status s = ExpectOperator("]"); !s.ok()) return s;
  ExprPtr expr = New(slice ? Expr::Kind::kSlice : Expr::Kind::kIndex, offset);
  expr->children.push_back(std::move(object));
  for (size_t i = 0; i < (slice ? 3u : 1u); ++i) expr->children.push_back(std::move(parts[i]));
  return Finish(std::move(expr));
}

absl::Status Parser::ParseArguments(std::vector<Argument>* arguments) {
  using ArgumentKind = Argument::Kind;
  if (absl::Status s = ExpectOperator("("); !s.ok()) return s;
  ArgumentKind last = ArgumentKind::kPositional;
  while (!IsOperator(")")) {
    const size_t offset = Peek().offset;
    Argument argument;
    if (TakeOperator("**")) {
      argument.kind = ArgumentKind::kSpreadNamed;
    } else if (TakeOperator("*")) {
      argument.kind = ArgumentKind::kSpread;
    } else if (Peek().kind == Kind::kName && IsOperator("=", 1)) {
      argument.kind = ArgumentKind::kNamed;
      argument.name = Peek().text;
      at_ += 2;
    }
    if (last != ArgumentKind::kPositional && argument.kind == ArgumentKind::kPositional) {
      return Fail(offset, "an argument without a name follows one with a name");
    }
    auto value = ParseExpression();
    if (!value.ok()) return value.status();
    argument.value = *std::move(value);
    last = argument.kind;
    arguments->push_back(std::move(argument));
    if (absl::Status s = CheckCount(arguments->size(), offset); !s.ok()) return s;
    if (!TakeOperator(",")) break;
  }
  return ExpectOperator(")");
}

Parser::Parsed Parser::ParseNumber() {
  const Token& token = tokens_[at_++];
  ExprPtr expr = New(Expr::Kind::kLiteral, token.offset);
  int64_t integer = 0;
  double real = 0;
  if (token.kind == Kind::kInteger) {
    if (!absl::SimpleAtoi(token.text, &integer)) {
      return Fail(token.offset, "a number takes more than 64 bits");
    }
    expr->literal = Value::Int(integer);
  } else {
    if (!absl::SimpleAtod(token.text, &real)) return Fail(token.offset, "this is no number");
    expr->literal = Value::Float(real);
  }
  return expr;
}

Parser::Parsed Parser::ParseList() {
  ExprPtr list = New(Expr::Kind::kList, Peek().offset);
  if (absl::Status s = ExpectOperator("["); !s.ok()) return s;
  while (!IsOperator("]")) {
    auto item = ParseExpression();
    if (!item.ok()) return item;
    list->children.push_back(*std::move(item));
    if (!TakeOperator(",")) break;
  }
  if (absl::Status s = ExpectOperator("]"); !s.ok()) return s;
  return Finish(std::move(list));
}

Parser::Parsed Parser::ParseDict() {
  ExprPtr dict = New(Expr::Kind::kDict, Peek().offset);
  if (absl::Status s = ExpectOperator("{"); !s.ok()) return s;
  while (!IsOperator("}")) {
    auto key = ParseExpression();
    if (!key.ok()) return key;
    if (absl::Status s = ExpectOperator(":"); !s.ok()) return s;
    auto value = ParseExpression();
    if (!value.ok()) return value;
    dict->children.push_back(*std::move(key));
    dict->children.push_back(*std::move(value));
    if (!TakeOperator(",")) break;
  }
  if (absl::Status s = ExpectOperator("}"); !s.ok()) return s;
  return Finish(std::move(dict));
}

Parser::Parsed Parser::ParsePrimary() {
  const Token& token = Peek();
  switch (token.kind) {
    case Kind::kInteger:
    case Kind::kFloat:
      return ParseNumber();
    case Kind::kString: {
      std::string text;
      while (Peek().kind == Kind::kString) text += tokens_[at_++].text;
      ExprPtr expr = New(Expr::Kind::kLiteral, token.offset);
      expr->literal = Value::String(text);
      return expr;
    }
    case Kind::kName: {
      ++at_;
      if (macro_ != nullptr && token.text == "varargs") macro_->takes_varargs = true;
      if (macro_ != nullptr && token.text == "kwargs") macro_->takes_kwargs = true;
      ExprPtr expr = New(Expr::Kind::kName, token.offset);
      expr->name = token.text;
      return expr;
    }
    default:
      break;
  }
  if (IsOperator("[")) return ParseList();
  if (IsOperator("{")) return ParseDict();
  if (!TakeOperator("(")) return Unexpected("an expression");
  if (TakeOperator(")")) return New(Expr::Kind::kList, token.offset);
  auto inner = ParseTuple();
  if (!inner.ok()) return inner;
  if (absl::Status s = ExpectOperator(")"); !s.ok()) return s;
  return inner;
}

}  // namespace trine::jinja
