// Parses tokens into a tree. Statements are in parser_statements.cc, expressions in
// parser_expressions.cc.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/template/parse/ast.h"
#include "runtime/template/parse/lexer.h"

namespace trine::jinja {

// Parses the tokens of one template. Call Parse once, because it consumes the tokens. Not
// thread-safe.
class Parser {
 public:
  // `source` is the text that Tokenize split into `tokens`; error messages quote it. Both must
  // outlive the parser, but not the tree. REQUIRES: the last token is kEnd.
  Parser(std::string_view source, const std::vector<Token>& tokens)
      : source_(source), tokens_(tokens) {}

  // Parses the whole template. Returns INVALID_ARGUMENT if the template is malformed, and
  // RESOURCE_EXHAUSTED if it is nested too deep or has a list of more than 256 names, parameters or
  // arguments. Messages name the place.
  absl::StatusOr<Block> Parse();

 private:
  using Parsed = absl::StatusOr<ExprPtr>;

  // --- Tokens
  //
  // Peek returns a token without taking it; beyond the end, it returns kEnd. Functions Is... test
  // the next token. Take... take the next token if it matches. Expect... take it or fail.
  const Token& Peek(size_t ahead = 0) const;
  bool IsOperator(std::string_view op, size_t ahead = 0) const;
  bool IsName(std::string_view name, size_t ahead = 0) const;
  bool TakeOperator(std::string_view op);
  bool TakeName(std::string_view name);
  absl::Status ExpectOperator(std::string_view op);
  absl::Status ExpectClose();
  absl::Status ExpectName(std::string_view what, std::string* name);
  // Returns the error for the next token, where `wanted` was expected.
  absl::Status Unexpected(std::string_view wanted) const;
  absl::Status Fail(size_t offset, std::string_view message) const;
  absl::Status TooDeep(size_t offset) const;

  // --- Statements
  //
  // Parses statements into `block` up to a tag whose name is in `ends`. Takes the tag's {% but not
  // its name. Without `ends`, parses up to the end of the template. `offset` is the place that an
  // error about the depth names.
  absl::Status ParseBlock(std::initializer_list<std::string_view> ends, size_t offset,
                          Block* block);
  absl::Status ParseStatement(Block* block);
  absl::Status ParseEnd(std::string_view name);
  absl::Status ParseIf(Statement* statement);
  absl::Status ParseFor(Statement* statement);
  absl::Status ParseSet(Statement* statement);
  absl::Status ParseMacro(Statement* statement);
  absl::Status ParseCall(Statement* statement);
  absl::Status ParseFilterBlock(Statement* statement);
  absl::Status ParseTargets(std::vector<std::string>* names);
  absl::Status ParseParameters(std::vector<Parameter>* parameters);
  absl::Status ParseMacroBody(std::string_view end, size_t offset, Macro* macro);

  // --- Expressions, from the loosest binding (ParseTuple) to the tightest (ParsePrimary)
  Parsed ParseTuple();
  Parsed ParseExpression();
  Parsed ParseOr();
  Parsed ParseAnd();
  Parsed ParseNot();
  Parsed ParseComparison();
  Parsed ParseSum();
  Parsed ParseProduct();
  Parsed ParsePower();
  Parsed ParseTest();
  Parsed ParseFilter();
  Parsed ParseSign();
  Parsed ParsePostfix();
  Parsed ParsePrimary();
  Parsed ParseNumber();
  Parsed ParseList();
  Parsed ParseDict();
  Parsed ParseSubscript(ExprPtr object);
  absl::Status ParseArguments(std::vector<Argument>* arguments);
  bool StartsTestArgument() const;

  // Limits a list of arguments, parameters or names, because such lists are searched linearly.
  // Returns RESOURCE_EXHAUSTED if `count` is above the limit.
  absl::Status CheckCount(size_t count, size_t offset) const;

  static ExprPtr New(Expr::Kind kind, size_t offset);
  // Returns `expr` with its height set, or RESOURCE_EXHAUSTED if the height exceeds the limit.
  Parsed Finish(ExprPtr expr);
  struct OperatorName;
  Parsed Binary(const OperatorName& name, size_t offset, ExprPtr left, ExprPtr right);
  // Returns the operator of `table` that is the next token, or nullptr.
  const OperatorName* FindOperator(std::span<const OperatorName> table) const;
  // Parses operands joined by operators of `table`. The operators group from the left.
  Parsed ParseLeft(std::span<const OperatorName> table, Parsed (Parser::*operand)());
  // Takes the next token, which is a unary operator, and parses the operand.
  Parsed ParseUnary(Expr::Kind kind, Parsed (Parser::*operand)());
  // Parses a name and, if "(" follows, arguments into `expr`. `what` describes the name in errors.
  absl::Status ParseNamed(std::string_view what, Expr* expr);
  static absl::Status Take(Parsed parsed, ExprPtr* to) {
    if (parsed.ok()) *to = *std::move(parsed);
    return parsed.status();
  }

  const std::string_view source_;
  const std::vector<Token>& tokens_;
  size_t at_ = 0;
  int depth_ = 0;           // blocks, brackets and unary operators around the next token
  int loops_ = 0;           // loops around the next token, within its macro
  Macro* macro_ = nullptr;  // the innermost macro or call block around the next token, or null
};

}  // namespace trine::jinja
