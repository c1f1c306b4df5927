// Tokens to a tree. Statements are read in parser_statements.cc, expressions in
// parser_expressions.cc and what they are made of in parser_operands.cc.
#ifndef TRINE_RUNTIME_TEMPLATE_PARSER_H_
#define TRINE_RUNTIME_TEMPLATE_PARSER_H_

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/template/ast.h"
#include "runtime/template/lexer.h"

namespace trine::jinja {

class Parser {
 public:
  // `source` is what the tokens were made of; both outlive the parser.
  Parser(std::string_view source, const std::vector<Token>& tokens)
      : source_(source), tokens_(tokens) {}

  // The whole template. INVALID_ARGUMENT with the place of what can't be read, RESOURCE_EXHAUSTED
  // where things are nested too deep.
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
  absl::StatusOr<std::string> ExpectName(std::string_view what);
  absl::Status Unexpected(std::string_view wanted) const;
  absl::Status Fail(size_t offset, std::string_view message) const;
  absl::Status TooDeep(size_t offset) const;

  // --- Statements
  // Up to a {% name %} with one of these names, whose {% is taken and whose name is not. An empty
  // list: up to the end.
  absl::StatusOr<Block> ParseBlock(std::initializer_list<std::string_view> ends, size_t offset);
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

  // Arguments, parameters and names are looked for one by one: there may not be many.
  absl::Status CheckCount(size_t count, size_t offset) const;

  static ExprPtr New(Expr::Kind kind, size_t offset);
  // With the height of what is in it, which is limited.
  Parsed Finish(ExprPtr expr);
  Parsed Binary(Operator op, size_t offset, ExprPtr left, ExprPtr right);

  const std::string_view source_;
  const std::vector<Token>& tokens_;
  size_t at_ = 0;
  int depth_ = 0;           // of what is being read
  int loops_ = 0;           // around it, within the macro
  Macro* macro_ = nullptr;  // around it
};

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_PARSER_H_
