#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "runtime/template/parser.h"

namespace trine::jinja {
namespace {

using Kind = Token::Kind;

// Of brackets in brackets while reading, and of the tree that comes of it: a + b + c is a tree of
// height 3.
constexpr int kMaxBrackets = 100;
constexpr int kMaxHeightOfTree = 300;

struct OperatorName {
  std::string_view text;
  Operator op;
};
constexpr OperatorName kComparisons[] = {
    {"==", Operator::kEqual},        {"!=", Operator::kNotEqual}, {"<=", Operator::kLessEqual},
    {">=", Operator::kGreaterEqual}, {"<", Operator::kLess},      {">", Operator::kGreater}};
constexpr OperatorName kSums[] = {
    {"+", Operator::kAdd}, {"-", Operator::kSubtract}, {"~", Operator::kConcatenate}};
constexpr OperatorName kProducts[] = {{"*", Operator::kMultiply},
                                      {"/", Operator::kDivide},
                                      {"//", Operator::kFloorDivide},
                                      {"%", Operator::kModulo}};

// Words that can't begin an argument of a test: `x is defined and y`.
constexpr std::string_view kWordsOfExpressions[] = {"and", "or", "not", "is", "in", "if", "else"};

template <size_t N>
const OperatorName* FindOperator(const OperatorName (&table)[N], const Token& token) {
  if (token.kind != Kind::kOperator) return nullptr;
  for (const OperatorName& entry : table) {
    if (entry.text == token.text) return &entry;
  }
  return nullptr;
}

}  // namespace

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

Parser::Parsed Parser::Binary(Operator op, size_t offset, ExprPtr left, ExprPtr right) {
  ExprPtr expr = New(Expr::Kind::kBinary, offset);
  expr->op = op;
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
    if (IsOperator(")") || Peek().kind == Kind::kCloseBlock) break;
    auto next = ParseExpression();
    if (!next.ok()) return next;
    tuple->children.push_back(*std::move(next));
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
  auto condition = ParseOr();
  if (!condition.ok()) return condition;
  ExprPtr expr = New(Expr::Kind::kConditional, offset);
  expr->children.push_back(*std::move(value));
  expr->children.push_back(*std::move(condition));
  expr->children.emplace_back();
  if (TakeName("else")) {
    auto otherwise = ParseExpression();
    if (!otherwise.ok()) return otherwise;
    expr->children.back() = *std::move(otherwise);
  }
  return Finish(std::move(expr));
}

Parser::Parsed Parser::ParseOr() {
  auto left = ParseAnd();
  while (left.ok() && IsName("or")) {
    ExprPtr expr = New(Expr::Kind::kOr, tokens_[at_++].offset);
    auto right = ParseAnd();
    if (!right.ok()) return right;
    expr->children.push_back(*std::move(left));
    expr->children.push_back(*std::move(right));
    left = Finish(std::move(expr));
  }
  return left;
}

Parser::Parsed Parser::ParseAnd() {
  auto left = ParseNot();
  while (left.ok() && IsName("and")) {
    ExprPtr expr = New(Expr::Kind::kAnd, tokens_[at_++].offset);
    auto right = ParseNot();
    if (!right.ok()) return right;
    expr->children.push_back(*std::move(left));
    expr->children.push_back(*std::move(right));
    left = Finish(std::move(expr));
  }
  return left;
}

Parser::Parsed Parser::ParseNot() {
  if (!IsName("not")) return ParseComparison();
  if (depth_ >= kMaxBrackets) return TooDeep(Peek().offset);
  ++depth_;
  const absl::Cleanup leave = [this] { --depth_; };
  ExprPtr expr = New(Expr::Kind::kNot, tokens_[at_++].offset);
  auto operand = ParseNot();
  if (!operand.ok()) return operand;
  expr->children.push_back(*std::move(operand));
  return Finish(std::move(expr));
}

Parser::Parsed Parser::ParseComparison() {
  auto left = ParseSum();
  while (left.ok()) {
    const size_t offset = Peek().offset;
    Operator op;
    if (IsName("not") && IsName("in", 1)) {
      op = Operator::kNotIn;
      at_ += 2;
    } else if (TakeName("in")) {
      op = Operator::kIn;
    } else if (const OperatorName* found = FindOperator(kComparisons, Peek()); found != nullptr) {
      op = found->op;
      ++at_;
    } else {
      break;
    }
    auto right = ParseSum();
    if (!right.ok()) return right;
    left = Binary(op, offset, *std::move(left), *std::move(right));
  }
  return left;
}

Parser::Parsed Parser::ParseSum() {
  auto left = ParseProduct();
  while (left.ok()) {
    const OperatorName* found = FindOperator(kSums, Peek());
    if (found == nullptr) break;
    const size_t offset = tokens_[at_++].offset;
    auto right = ParseProduct();
    if (!right.ok()) return right;
    left = Binary(found->op, offset, *std::move(left), *std::move(right));
  }
  return left;
}

Parser::Parsed Parser::ParseProduct() {
  auto left = ParsePower();
  while (left.ok()) {
    const OperatorName* found = FindOperator(kProducts, Peek());
    if (found == nullptr) break;
    const size_t offset = tokens_[at_++].offset;
    auto right = ParsePower();
    if (!right.ok()) return right;
    left = Binary(found->op, offset, *std::move(left), *std::move(right));
  }
  return left;
}

Parser::Parsed Parser::ParsePower() {
  auto left = ParseTest();
  while (left.ok() && IsOperator("**")) {
    const size_t offset = tokens_[at_++].offset;
    auto right = ParseTest();
    if (!right.ok()) return right;
    left = Binary(Operator::kPower, offset, *std::move(left), *std::move(right));
  }
  return left;
}

bool Parser::StartsTestArgument() const {
  const Token& token = Peek();
  if (token.kind == Kind::kName) {
    return std::find(std::begin(kWordsOfExpressions), std::end(kWordsOfExpressions), token.text) ==
           std::end(kWordsOfExpressions);
  }
  return token.kind == Kind::kString || token.kind == Kind::kInteger ||
         token.kind == Kind::kFloat || IsOperator("[") || IsOperator("{");
}

Parser::Parsed Parser::ParseTest() {
  auto operand = ParseFilter();
  while (operand.ok() && IsName("is")) {
    ExprPtr expr = New(Expr::Kind::kTest, tokens_[at_++].offset);
    expr->negated = TakeName("not");
    auto name = ExpectName("the name of a test");
    if (!name.ok()) return name.status();
    expr->name = *std::move(name);
    if (IsOperator("(")) {
      if (absl::Status s = ParseArguments(&expr->arguments); !s.ok()) return s;
    } else if (StartsTestArgument()) {  // x is divisibleby 3
      auto argument = ParsePostfix();
      if (!argument.ok()) return argument;
      expr->arguments.push_back({Argument::Kind::kPositional, "", *std::move(argument)});
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
    auto name = ExpectName("the name of a filter");
    if (!name.ok()) return name.status();
    expr->name = *std::move(name);
    if (IsOperator("(")) {
      if (absl::Status s = ParseArguments(&expr->arguments); !s.ok()) return s;
    }
    expr->children.push_back(*std::move(operand));
    operand = Finish(std::move(expr));
  }
  return operand;
}

Parser::Parsed Parser::ParseSign() {
  if (!IsOperator("-") && !IsOperator("+")) return ParsePostfix();
  if (depth_ >= kMaxBrackets) return TooDeep(Peek().offset);
  ++depth_;
  const absl::Cleanup leave = [this] { --depth_; };
  const Expr::Kind kind = IsOperator("-") ? Expr::Kind::kNegate : Expr::Kind::kPlus;
  ExprPtr expr = New(kind, tokens_[at_++].offset);
  auto operand = ParseSign();
  if (!operand.ok()) return operand;
  expr->children.push_back(*std::move(operand));
  return Finish(std::move(expr));
}

}  // namespace trine::jinja
