#include <algorithm>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "runtime/template/parse/parser.h"

namespace trine::jinja {
namespace {

using TokenKind = Token::Kind;

// Limits of nested brackets while parsing, and of the height of the resulting tree: a + b + c is a
// tree of height 3.
constexpr int kMaxBrackets = 100;
constexpr int kMaxHeightOfTree = 300;

// Words that can't begin an argument of a test: `x is defined and y`.
constexpr std::string_view kWordsOfExpressions[] = {"and", "or", "not", "is", "in", "if", "else"};

}  // namespace

struct Parser::OperatorName {
  std::string_view text;
  Operator op;
  Expr::Kind kind = Expr::Kind::kBinary;  // others are names: and, or
};

ExprPtr Parser::New(Expr::Kind kind, size_t offset) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->offset = offset;
  return expr;
}

Parser::Parsed Parser::Finish(ExprPtr expr) {
  for (const ExprPtr& child : expr->children) {
    if (child != nullptr) expr->height = std::max(expr->height, 1 + child->height);
  }
  for (const Argument& argument : expr->arguments) {
    expr->height = std::max(expr->height, 1 + argument.value->height);
  }
  if (expr->height > kMaxHeightOfTree) return TooDeep(expr->offset);
  return expr;
}

Parser::Parsed Parser::Binary(const OperatorName& name, size_t offset, ExprPtr left,
                              ExprPtr right) {
  ExprPtr expr = New(name.kind, offset);
  expr->op = name.op;
  expr->children.push_back(std::move(left));
  expr->children.push_back(std::move(right));
  return Finish(std::move(expr));
}

Parser::Parsed Parser::ParseTuple() {
  const size_t offset = Peek().offset;
  auto first = ParseExpression();
  if (!first.ok() || !IsOperator(",")) return first;
  ExprPtr tuple = New(Expr::Kind::kList, offset);
  tuple->children.push_back(*std::move(first));
  while (TakeOperator(",")) {
    if (IsOperator(")") || Peek().kind == TokenKind::kCloseBlock) break;
    if (absl::Status s = Take(ParseExpression(), &tuple->children.emplace_back()); !s.ok())
      return s;
  }
  return Finish(std::move(tuple));
}

Parser::Parsed Parser::ParseExpression() {
  if (depth_ >= kMaxBrackets) return TooDeep(Peek().offset);
  ++depth_;
  const absl::Cleanup leave = [this] { --depth_; };
  auto value = ParseOr();
  const size_t offset = Peek().offset;
  if (!value.ok() || !TakeName("if")) return value;
  ExprPtr expr = New(Expr::Kind::kConditional, offset);
  expr->children.resize(3);
  expr->children[0] = *std::move(value);
  if (absl::Status s = Take(ParseOr(), &expr->children[1]); !s.ok()) return s;
  if (TakeName("else")) {
    if (absl::Status s = Take(ParseExpression(), &expr->children[2]); !s.ok()) return s;
  }
  return Finish(std::move(expr));
}

const Parser::OperatorName* Parser::FindOperator(std::span<const OperatorName> table) const {
  for (const OperatorName& entry : table) {
    const bool named = entry.kind != Expr::Kind::kBinary;
    if (named ? IsName(entry.text) : IsOperator(entry.text)) return &entry;
  }
  return nullptr;
}

Parser::Parsed Parser::ParseLeft(std::span<const OperatorName> table, Parsed (Parser::*operand)()) {
  auto left = (this->*operand)();
  while (left.ok()) {
    const OperatorName* found = FindOperator(table);
    if (found == nullptr) break;
    const size_t offset = tokens_[at_++].offset;
    auto right = (this->*operand)();
    if (!right.ok()) return right;
    left = Binary(*found, offset, *std::move(left), *std::move(right));
  }
  return left;
}

Parser::Parsed Parser::ParseUnary(Expr::Kind kind, Parsed (Parser::*operand)()) {
  if (depth_ >= kMaxBrackets) return TooDeep(Peek().offset);
  ++depth_;
  const absl::Cleanup leave = [this] { --depth_; };
  ExprPtr expr = New(kind, tokens_[at_++].offset);
  expr->children.emplace_back();
  if (absl::Status s = Take((this->*operand)(), &expr->children[0]); !s.ok()) return s;
  return Finish(std::move(expr));
}

Parser::Parsed Parser::ParseOr() {
  static constexpr OperatorName kOr[] = {{"or", {}, Expr::Kind::kOr}};
  return ParseLeft(kOr, &Parser::ParseAnd);
}

Parser::Parsed Parser::ParseAnd() {
  static constexpr OperatorName kAnd[] = {{"and", {}, Expr::Kind::kAnd}};
  return ParseLeft(kAnd, &Parser::ParseNot);
}

Parser::Parsed Parser::ParseNot() {
  return IsName("not") ? ParseUnary(Expr::Kind::kNot, &Parser::ParseNot) : ParseComparison();
}

Parser::Parsed Parser::ParseComparison() {
  static constexpr OperatorName kComparisons[] = {
      {"==", Operator::kEqual},        {"!=", Operator::kNotEqual}, {"<=", Operator::kLessEqual},
      {">=", Operator::kGreaterEqual}, {"<", Operator::kLess},      {">", Operator::kGreater}};
  auto left = ParseSum();
  while (left.ok()) {
    const size_t offset = Peek().offset;
    OperatorName name = {};
    if (IsName("not") && IsName("in", 1)) {
      name.op = Operator::kNotIn;
      at_ += 2;
    } else if (TakeName("in")) {
      name.op = Operator::kIn;
    } else if (const OperatorName* found = FindOperator(kComparisons); found != nullptr) {
      name = *found;
      ++at_;
    } else {
      break;
    }
    auto right = ParseSum();
    if (!right.ok()) return right;
    left = Binary(name, offset, *std::move(left), *std::move(right));
  }
  return left;
}

Parser::Parsed Parser::ParseSum() {
  static constexpr OperatorName kSums[] = {
      {"+", Operator::kAdd}, {"-", Operator::kSubtract}, {"~", Operator::kConcatenate}};
  return ParseLeft(kSums, &Parser::ParseProduct);
}

Parser::Parsed Parser::ParseProduct() {
  static constexpr OperatorName kProducts[] = {{"*", Operator::kMultiply},
                                               {"/", Operator::kDivide},
                                               {"//", Operator::kFloorDivide},
                                               {"%", Operator::kModulo}};
  return ParseLeft(kProducts, &Parser::ParsePower);
}

Parser::Parsed Parser::ParsePower() {
  static constexpr OperatorName kPowers[] = {{"**", Operator::kPower}};
  return ParseLeft(kPowers, &Parser::ParseTest);
}

bool Parser::StartsTestArgument() const {
  const Token& token = Peek();
  if (token.kind == TokenKind::kName) {
    return std::find(std::begin(kWordsOfExpressions), std::end(kWordsOfExpressions), token.text) ==
           std::end(kWordsOfExpressions);
  }
  return token.kind == TokenKind::kString || token.kind == TokenKind::kInteger ||
         token.kind == TokenKind::kFloat || IsOperator("[") || IsOperator("{");
}

Parser::Parsed Parser::ParseTest() {
  auto operand = ParseFilter();
  while (operand.ok() && IsName("is")) {
    ExprPtr expr = New(Expr::Kind::kTest, tokens_[at_++].offset);
    expr->negated = TakeName("not");
    const bool called = IsOperator("(", 1);
    if (absl::Status s = ParseNamed("the name of a test", expr.get()); !s.ok()) return s;
    if (!called && StartsTestArgument()) {  // x is divisibleby 3
      Argument& argument = expr->arguments.emplace_back();
      if (absl::Status s = Take(ParsePostfix(), &argument.value); !s.ok()) return s;
    }
    expr->children.push_back(*std::move(operand));
    operand = Finish(std::move(expr));
  }
  return operand;
}

Parser::Parsed Parser::ParseFilter() {
  auto operand = ParseSign();
  while (operand.ok() && TakeOperator("|")) {
    ExprPtr expr = New(Expr::Kind::kFilter, Peek().offset);
    if (absl::Status s = ParseNamed("the name of a filter", expr.get()); !s.ok()) return s;
    expr->children.push_back(*std::move(operand));
    operand = Finish(std::move(expr));
  }
  return operand;
}

Parser::Parsed Parser::ParseSign() {
  if (!IsOperator("-") && !IsOperator("+")) return ParsePostfix();
  return ParseUnary(IsOperator("-") ? Expr::Kind::kNegate : Expr::Kind::kPlus, &Parser::ParseSign);
}

// --- Operands: literals, names, members, indices, calls

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
      const bool index = Peek().kind == TokenKind::kInteger;
      ExprPtr member = New(index ? Expr::Kind::kIndex : Expr::Kind::kAttribute, offset);
      member->children.push_back(*std::move(object));
      if (index) {
        auto number = ParseNumber();
        if (!number.ok()) return number;
        member->children.push_back(*std::move(number));
      } else {
        if (absl::Status s = ExpectName("the name of a member", &member->name); !s.ok()) return s;
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
      if (absl::Status s = Take(ParseExpression(), &parts[n]); !s.ok()) return s;
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

absl::Status Parser::ParseNamed(std::string_view what, Expr* expr) {
  absl::Status s = ExpectName(what, &expr->name);
  return s.ok() && IsOperator("(") ? ParseArguments(&expr->arguments) : s;
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
    } else if (Peek().kind == TokenKind::kName && IsOperator("=", 1)) {
      argument.kind = ArgumentKind::kNamed;
      argument.name = Peek().text;
      at_ += 2;
    }
    if (last != ArgumentKind::kPositional && argument.kind == ArgumentKind::kPositional) {
      return Fail(offset, "an argument without a name follows one with a name");
    }
    if (absl::Status s = Take(ParseExpression(), &argument.value); !s.ok()) return s;
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
  if (token.kind == TokenKind::kInteger) {
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
    if (absl::Status s = Take(ParseExpression(), &list->children.emplace_back()); !s.ok()) return s;
    if (!TakeOperator(",")) break;
  }
  if (absl::Status s = ExpectOperator("]"); !s.ok()) return s;
  return Finish(std::move(list));
}

Parser::Parsed Parser::ParseDict() {
  ExprPtr dict = New(Expr::Kind::kDict, Peek().offset);
  if (absl::Status s = ExpectOperator("{"); !s.ok()) return s;
  while (!IsOperator("}")) {
    if (absl::Status s = Take(ParseExpression(), &dict->children.emplace_back()); !s.ok()) return s;
    if (absl::Status s = ExpectOperator(":"); !s.ok()) return s;
    if (absl::Status s = Take(ParseExpression(), &dict->children.emplace_back()); !s.ok()) return s;
    if (!TakeOperator(",")) break;
  }
  if (absl::Status s = ExpectOperator("}"); !s.ok()) return s;
  return Finish(std::move(dict));
}

Parser::Parsed Parser::ParsePrimary() {
  const Token& token = Peek();
  switch (token.kind) {
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return ParseNumber();
    case TokenKind::kString: {
      std::string text;
      while (Peek().kind == TokenKind::kString) text += tokens_[at_++].text;
      ExprPtr expr = New(Expr::Kind::kLiteral, token.offset);
      expr->literal = Value::String(text);
      return expr;
    }
    case TokenKind::kName: {
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
