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

class Parser {
 public:
  // `source` is the text of the tokens. Both must outlive the parser.
  Parser(std::string_view source, const std::vector<Token>& tokens)
      : source_(source), tokens_(tokens) {}

  // Parses the whole template. Fails with INVALID_ARGUMENT, with the place, if it is malformed, and
  // with RESOURCE_EXHAUSTED if it is nested too deep.
  absl::StatusOr<Block> Parse();

 private:
  using Parsed = absl::StatusOr<ExprPtr>;

  // --- Tokens
  const Token& Peek(size_t ahead = 0) const;
  bool IsOperator(std::string_view op, size_t ahead = 0) const;
  bool IsName(std::string_view name, size_t ahead = 0) const;
  bool TakeOperator(std::string_view op);
  bool TakeName(std::string_view name);
  absl::Status ExpectOperator(std::string_view op);
  absl::Status ExpectClose();
  absl::Status ExpectName(std::string_view what, std::string* name);
  absl::Status Unexpected(std::string_view wanted) const;
  absl::Status Fail(size_t offset, std::string_view message) const;
  absl::Status TooDeep(size_t offset) const;

  // --- Statements
  //
  // Parses up to a {% name %} with one of these names, or up to the end if there are none. Takes
  // the {% but not the name.
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

  // --- Expressions, the loosest first
  Parsed ParseExpression();
  Parsed ParseTuple();
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

  // Fails if there are too many arguments, parameters or names: these are searched linearly.
  absl::Status CheckCount(size_t count, size_t offset) const;

  static ExprPtr New(Expr::Kind kind, size_t offset);
  // Sets the height of the expression. Fails with RESOURCE_EXHAUSTED if it is too high.
  Parsed Finish(ExprPtr expr);
  struct OperatorName;
  Parsed Binary(const OperatorName& name, size_t offset, ExprPtr left, ExprPtr right);
  const OperatorName* FindOperator(std::span<const OperatorName> table) const;  // at this token
  // Parses operands joined by operators of the table, which group from the left.
  Parsed ParseLeft(std::span<const OperatorName> table, Parsed (Parser::*operand)());
  // Parses the operator at this token, which has one operand, and its operand.
  Parsed ParseUnary(Expr::Kind kind, Parsed (Parser::*operand)());
  // Parses a name, and arguments if there are any.
  absl::Status ParseNamed(std::string_view what, Expr* expr);
  static absl::Status Take(Parsed parsed, ExprPtr* to) {
    if (parsed.ok()) *to = *std::move(parsed);
    return parsed.status();
  }

  const std::string_view source_;
  const std::vector<Token>& tokens_;
  size_t at_ = 0;
  int depth_ = 0;           // nesting at this token
  int loops_ = 0;           // loops around this token, within the macro
  Macro* macro_ = nullptr;  // the macro around this token
};

}  // namespace trine::jinja
