#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "runtime/template/parse/lexer.h"
#include "runtime/template/parse/parser.h"
#include "runtime/template/values/budget.h"

namespace trine::jinja {
namespace {

using TokenKind = Token::Kind;

// Limits the depth of blocks, brackets and unary operators around a statement.
constexpr int kMaxBlockDepth = 100;

// Limits the parameters or arguments of a call, and the names that one statement sets.
constexpr size_t kMaxCount = 256;

}  // namespace

const Token& Parser::Peek(size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

bool Parser::IsOperator(std::string_view op, size_t ahead) const {
  return Peek(ahead).kind == TokenKind::kOperator && Peek(ahead).text == op;
}

bool Parser::IsName(std::string_view name, size_t ahead) const {
  return Peek(ahead).kind == TokenKind::kName && Peek(ahead).text == name;
}

bool Parser::TakeOperator(std::string_view op) {
  if (!IsOperator(op)) return false;
  ++at_;
  return true;
}

bool Parser::TakeName(std::string_view name) {
  if (!IsName(name)) return false;
  ++at_;
  return true;
}

absl::Status Parser::Fail(size_t offset, std::string_view message) const {
  return AtPlace(source_, offset, Wrong(std::string(message)));
}

absl::Status Parser::TooDeep(size_t offset) const {
  return AtPlace(source_, offset, TooMuch("the template is nested too deep"));
}

absl::Status Parser::CheckCount(size_t count, size_t offset) const {
  if (count <= kMaxCount) return absl::OkStatus();
  return AtPlace(source_, offset, TooMuch("there are more than ", kMaxCount, " of these"));
}

absl::Status Parser::Unexpected(std::string_view wanted) const {
  const Token& token = Peek();
  if (token.kind == TokenKind::kEnd) {
    return Fail(token.offset, Words("the template ends where ", wanted, " was expected"));
  }
  const std::string_view found =
      token.kind == TokenKind::kText ? "text" : std::string_view(token.text).substr(0, 40);
  return Fail(token.offset, Words("\"", found, "\" stands where ", wanted, " was expected"));
}

absl::Status Parser::ExpectOperator(std::string_view op) {
  return TakeOperator(op) ? absl::OkStatus() : Unexpected(Words("\"", op, "\""));
}

absl::Status Parser::ExpectClose() {
  if (Peek().kind != TokenKind::kCloseBlock) return Unexpected("\"%}\"");
  ++at_;
  return absl::OkStatus();
}

absl::Status Parser::ExpectName(std::string_view what, std::string* name) {
  if (Peek().kind != TokenKind::kName) return Unexpected(what);
  *name = tokens_[at_++].text;
  return absl::OkStatus();
}

absl::StatusOr<Block> Parser::Parse() {
  Block block;
  if (absl::Status s = ParseBlock({}, 0, &block); !s.ok()) return s;
  return block;
}

absl::Status Parser::ParseBlock(std::initializer_list<std::string_view> ends, size_t offset,
                                Block* block) {
  if (depth_ >= kMaxBlockDepth) return TooDeep(offset);
  ++depth_;
  const absl::Cleanup leave = [this] { --depth_; };
  while (true) {
    const Token& token = Peek();
    switch (token.kind) {
      case TokenKind::kEnd:
        if (ends.size() == 0) return absl::OkStatus();
        return Fail(offset, Words("there is no {% ", *(ends.end() - 1), " %}"));
      case TokenKind::kText: {
        Statement& text = block->emplace_back();
        text.kind = Statement::Kind::kText;
        text.offset = token.offset;
        text.text = token.text;
        ++at_;
        break;
      }
      case TokenKind::kOpenOutput: {
        Statement& output = block->emplace_back();
        output.kind = Statement::Kind::kOutput;
        output.offset = token.offset;
        ++at_;
        if (absl::Status s = Take(ParseExpression(), &output.expr); !s.ok()) return s;
        if (Peek().kind != TokenKind::kCloseOutput) return Unexpected("\"}}\"");
        ++at_;
        break;
      }
      case TokenKind::kOpenBlock: {
        const bool last = std::any_of(ends.begin(), ends.end(),
                                      [&](std::string_view end) { return IsName(end, 1); });
        ++at_;
        if (last) return absl::OkStatus();
        if (absl::Status s = ParseStatement(block); !s.ok()) return s;
        break;
      }
      default:
        return Unexpected("a tag or text");
    }
  }
}

absl::Status Parser::ParseStatement(Block* block) {
  Statement statement;
  statement.offset = Peek().offset;
  std::string name;
  absl::Status status = ExpectName("the name of a statement", &name);
  if (!status.ok()) return status;
  if (name == "if") {
    status = ParseIf(&statement);
  } else if (name == "for") {
    status = ParseFor(&statement);
  } else if (name == "set") {
    status = ParseSet(&statement);
  } else if (name == "macro") {
    status = ParseMacro(&statement);
  } else if (name == "call") {
    status = ParseCall(&statement);
  } else if (name == "filter") {
    status = ParseFilterBlock(&statement);
  } else if (name == "generation" || name == "endgeneration") {
    return ExpectClose();  // marks the text that a model is trained on; does not change it
  } else if (name == "break" || name == "continue") {
    if (loops_ == 0) return Fail(statement.offset, Words(name, " outside of a loop"));
    statement.kind = name == "break" ? Statement::Kind::kBreak : Statement::Kind::kContinue;
    status = ExpectClose();
  } else {
    return Fail(statement.offset, Words("there is no statement \"", name, "\" here"));
  }
  if (status.ok()) block->push_back(std::move(statement));
  return status;
}

absl::Status Parser::ParseEnd(std::string_view name) {
  if (!TakeName(name)) return Unexpected(name);
  return ExpectClose();
}

absl::Status Parser::ParseIf(Statement* statement) {
  statement->kind = Statement::Kind::kIf;
  while (true) {
    Statement::Branch& branch = statement->branches.emplace_back();
    if (absl::Status s = Take(ParseExpression(), &branch.condition); !s.ok()) return s;
    if (absl::Status s = ExpectClose(); !s.ok()) return s;
    absl::Status s = ParseBlock({"elif", "else", "endif"}, statement->offset, &branch.body);
    if (!s.ok()) return s;
    if (!TakeName("elif")) break;
  }
  if (TakeName("else")) {
    if (absl::Status s = ExpectClose(); !s.ok()) return s;
    Block& body = statement->branches.emplace_back().body;
    if (absl::Status s = ParseBlock({"endif"}, statement->offset, &body); !s.ok()) return s;
  }
  return ParseEnd("endif");
}

absl::Status Parser::ParseTargets(std::vector<std::string>* names) {
  const bool bracketed = TakeOperator("(");
  do {
    absl::Status named = ExpectName("the name of a variable", &names->emplace_back());
    if (!named.ok()) return named;
    if (absl::Status s = CheckCount(names->size(), Peek().offset); !s.ok()) return s;
  } while (TakeOperator(","));
  return bracketed ? ExpectOperator(")") : absl::OkStatus();
}

absl::Status Parser::ParseFor(Statement* statement) {
  statement->kind = Statement::Kind::kFor;
  if (absl::Status s = ParseTargets(&statement->names); !s.ok()) return s;
  if (!TakeName("in")) return Unexpected("\"in\"");
  if (absl::Status s = Take(ParseOr(), &statement->expr); !s.ok()) return s;
  if (TakeName("if")) {
    if (absl::Status s = Take(ParseExpression(), &statement->condition); !s.ok()) return s;
  }
  if (absl::Status s = ExpectClose(); !s.ok()) return s;
  ++loops_;
  absl::Status status = ParseBlock({"else", "endfor"}, statement->offset, &statement->body);
  --loops_;
  if (!status.ok()) return status;
  if (TakeName("else")) {
    if (absl::Status s = ExpectClose(); !s.ok()) return s;
    status = ParseBlock({"endfor"}, statement->offset, &statement->otherwise);
    if (!status.ok()) return status;
  }
  return ParseEnd("endfor");
}

absl::Status Parser::ParseSet(Statement* statement) {
  statement->kind = Statement::Kind::kSet;
  const bool member = IsOperator(".", 1);
  if (member) {
    auto target = ParsePostfix();
    if (!target.ok()) return target.status();
    if ((*target)->kind != Expr::Kind::kAttribute) {
      return Fail(statement->offset, "only variables and members of namespaces can be set");
    }
    statement->names.push_back((*target)->name);
    statement->expr = std::move((*target)->children[0]);
  } else if (absl::Status s = ParseTargets(&statement->names); !s.ok()) {
    return s;
  }
  if (TakeOperator("=")) {
    if (absl::Status s = Take(ParseTuple(), &statement->value); !s.ok()) return s;
    return ExpectClose();
  }
  if (statement->names.size() != 1) return Unexpected("\"=\"");
  if (absl::Status s = ExpectClose(); !s.ok()) return s;
  absl::Status s = ParseBlock({"endset"}, statement->offset, &statement->body);
  return s.ok() ? ParseEnd("endset") : s;
}

absl::Status Parser::ParseParameters(std::vector<Parameter>* parameters) {
  if (absl::Status s = ExpectOperator("("); !s.ok()) return s;
  while (!IsOperator(")")) {
    const size_t offset = Peek().offset;
    Parameter parameter;
    if (absl::Status s = ExpectName("the name of a parameter", &parameter.name); !s.ok()) return s;
    for (const Parameter& other : *parameters) {
      if (other.name == parameter.name) {
        return Fail(offset, Words(parameter.name, " is there twice"));
      }
    }
    if (TakeOperator("=")) {
      if (absl::Status s = Take(ParseExpression(), &parameter.value); !s.ok()) return s;
    } else if (!parameters->empty() && parameters->back().value != nullptr) {
      return Fail(offset, "a parameter without a default follows one with a default");
    }
    parameters->push_back(std::move(parameter));
    if (absl::Status s = CheckCount(parameters->size(), offset); !s.ok()) return s;
    if (!TakeOperator(",")) break;
  }
  return ExpectOperator(")");
}

absl::Status Parser::ParseMacroBody(std::string_view end, size_t offset, Macro* macro) {
  Macro* const around = std::exchange(macro_, macro);
  const int loops_around = std::exchange(loops_, 0);
  absl::Status s = ParseBlock({end}, offset, &macro->body);
  macro_ = around;
  loops_ = loops_around;
  return s.ok() ? ParseEnd(end) : s;
}

absl::Status Parser::ParseMacro(Statement* statement) {
  statement->kind = Statement::Kind::kMacro;
  statement->macro = std::make_unique<Macro>();
  absl::Status named = ExpectName("the name of a macro", &statement->macro->name);
  if (!named.ok()) return named;
  if (absl::Status s = ParseParameters(&statement->macro->parameters); !s.ok()) return s;
  if (absl::Status s = ExpectClose(); !s.ok()) return s;
  return ParseMacroBody("endmacro", statement->offset, statement->macro.get());
}

absl::Status Parser::ParseCall(Statement* statement) {
  statement->kind = Statement::Kind::kCall;
  statement->macro = std::make_unique<Macro>();
  statement->macro->name = "caller";
  if (IsOperator("(")) {
    if (absl::Status s = ParseParameters(&statement->macro->parameters); !s.ok()) return s;
  }
  auto call = ParsePostfix();
  if (!call.ok()) return call.status();
  if ((*call)->kind != Expr::Kind::kCall) {
    return Fail(statement->offset, "call wants the call of a macro");
  }
  statement->expr = *std::move(call);
  if (absl::Status s = ExpectClose(); !s.ok()) return s;
  return ParseMacroBody("endcall", statement->offset, statement->macro.get());
}

absl::Status Parser::ParseFilterBlock(Statement* statement) {
  statement->kind = Statement::Kind::kFilter;
  statement->expr = New(Expr::Kind::kFilter, Peek().offset);
  if (absl::Status s = ParseNamed("the name of a filter", statement->expr.get()); !s.ok()) return s;
  if (absl::Status s = ExpectClose(); !s.ok()) return s;
  absl::Status s = ParseBlock({"endfilter"}, statement->offset, &statement->body);
  return s.ok() ? ParseEnd("endfilter") : s;
}

}  // namespace trine::jinja
