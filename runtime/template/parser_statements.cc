#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "runtime/template/parser.h"
#include "runtime/template/source.h"
#include "runtime/template/words.h"

namespace trine::jinja {
namespace {

using Kind = Token::Kind;

// Statements in statements. Expressions have a limit of their own.
constexpr int kMaxBlockDepth = 100;

// Of parameters, arguments and names to be set together.
constexpr size_t kMaxCount = 256;

}  // namespace

const Token& Parser::Peek(size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

bool Parser::IsOperator(std::string_view op, size_t ahead) const {
  return Peek(ahead).kind == Kind::kOperator && Peek(ahead).text == op;
}

bool Parser::IsName(std::string_view name, size_t ahead) const {
  return Peek(ahead).kind == Kind::kName && Peek(ahead).text == name;
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
  if (token.kind == Kind::kEnd) {
    return Fail(token.offset, Words("the template ends where ", wanted, " was expected"));
  }
  const std::string_view found =
      token.kind == Kind::kText ? "text" : std::string_view(token.text).substr(0, 40);
  return Fail(token.offset, Words("\"", found, "\" stands where ", wanted, " was expected"));
}

absl::Status Parser::ExpectOperator(std::string_view op) {
  return TakeOperator(op) ? absl::OkStatus() : Unexpected(Words("\"", op, "\""));
}

absl::Status Parser::ExpectClose() {
  if (Peek().kind != Kind::kCloseBlock) return Unexpected("\"%}\"");
  ++at_;
  return absl::OkStatus();
}

absl::StatusOr<std::string> Parser::ExpectName(std::string_view what) {
  if (Peek().kind != Kind::kName) return Unexpected(what);
  return tokens_[at_++].text;
}

absl::StatusOr<Block> Parser::Parse() { return ParseBlock({}, 0); }

absl::StatusOr<Block> Parser::ParseBlock(std::initializer_list<std::string_view> ends,
                                         size_t offset) {
  if (depth_ >= kMaxBlockDepth) return TooDeep(offset);
  ++depth_;
  const absl::Cleanup leave = [this] { --depth_; };
  Block block;
  while (true) {
    const Token& token = Peek();
    switch (token.kind) {
      case Kind::kEnd:
        if (ends.size() == 0) return block;
        return Fail(offset, Words("there is no {% ", *(ends.end() - 1), " %}"));
      case Kind::kText: {
        Statement text;
        text.kind = Statement::Kind::kText;
        text.offset = token.offset;
        text.text = token.text;
        block.push_back(std::move(text));
        ++at_;
        break;
      }
      case Kind::kOpenOutput: {
        Statement output;
        output.kind = Statement::Kind::kOutput;
        output.offset = token.offset;
        ++at_;
        auto expr = ParseExpression();
        if (!expr.ok()) return expr.status();
        output.expr = *std::move(expr);
        if (Peek().kind != Kind::kCloseOutput) return Unexpected("\"}}\"");
        ++at_;
        block.push_back(std::move(output));
        break;
      }
      case Kind::kOpenBlock: {
        const bool last = std::any_of(ends.begin(), ends.end(),
                                      [&](std::string_view end) { return IsName(end, 1); });
        ++at_;
        if (last) return block;
        if (absl::Status s = ParseStatement(&block); !s.ok()) return s;
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
  const auto name = ExpectName("the name of a statement");
  if (!name.ok()) return name.status();
  absl::Status status;
  if (*name == "if") {
    status = ParseIf(&statement);
  } else if (*name == "for") {
    status = ParseFor(&statement);
  } else if (*name == "set") {
    status = ParseSet(&statement);
  } else if (*name == "macro") {
    status = ParseMacro(&statement);
  } else if (*name == "call") {
    status = ParseCall(&statement);
  } else if (*name == "filter") {
    status = ParseFilterBlock(&statement);
  } else if (*name == "generation" || *name == "endgeneration") {
    return ExpectClose();  // marks what a model is trained on; says nothing about the text
  } else if (*name == "break" || *name == "continue") {
    if (loops_ == 0) return Fail(statement.offset, Words(*name, " outside of a loop"));
    statement.kind = *name == "break" ? Statement::Kind::kBreak : Statement::Kind::kContinue;
    status = ExpectClose();
  } else {
    return Fail(statement.offset, Words("there is no statement \"", *name, "\" here"));
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
    auto condition = ParseExpression();
    if (!condition.ok()) return condition.status();
    if (absl::Status s = ExpectClose(); !s.ok()) return s;
    auto body = ParseBlock({"elif", "else", "endif"}, statement->offset);
    if (!body.ok()) return body.status();
    statement->branches.push_back({*std::move(condition), *std::move(body)});
    if (!TakeName("elif")) break;
  }
  if (TakeName("else")) {
    if (absl::Status s = ExpectClose(); !s.ok()) return s;
    auto body = ParseBlock({"endif"}, statement->offset);
    if (!body.ok()) return body.status();
    statement->branches.push_back({nullptr, *std::move(body)});
  }
  return ParseEnd("endif");
}

absl::Status Parser::ParseTargets(std::vector<std::string>* names) {
  const bool bracketed = TakeOperator("(");
  do {
    auto name = ExpectName("the name of a variable");
    if (!name.ok()) return name.status();
    names->push_back(*std::move(name));
    if (absl::Status s = CheckCount(names->size(), Peek().offset); !s.ok()) return s;
  } while (TakeOperator(","));
  return bracketed ? ExpectOperator(")") : absl::OkStatus();
}

absl::Status Parser::ParseFor(Statement* statement) {
  statement->kind = Statement::Kind::kFor;
  if (absl::Status s = ParseTargets(&statement->names); !s.ok()) return s;
  if (!TakeName("in")) return Unexpected("\"in\"");
  auto items = ParseOr();
  if (!items.ok()) return items.status();
  statement->expr = *std::move(items);
  if (TakeName("if")) {
    auto condition = ParseExpression();
    if (!condition.ok()) return condition.status();
    statement->condition = *std::move(condition);
  }
  if (absl::Status s = ExpectClose(); !s.ok()) return s;
  ++loops_;
  auto body = ParseBlock({"else", "endfor"}, statement->offset);
  --loops_;
  if (!body.ok()) return body.status();
  statement->body = *std::move(body);
  if (TakeName("else")) {
    if (absl::Status s = ExpectClose(); !s.ok()) return s;
    auto otherwise = ParseBlock({"endfor"}, statement->offset);
    if (!otherwise.ok()) return otherwise.status();
    statement->otherwise = *std::move(otherwise);
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
    auto value = ParseTuple();
    if (!value.ok()) return value.status();
    statement->value = *std::move(value);
    return ExpectClose();
  }
  if (statement->names.size() != 1) return Unexpected("\"=\"");
  if (absl::Status s = ExpectClose(); !s.ok()) return s;
  auto body = ParseBlock({"endset"}, statement->offset);
  if (!body.ok()) return body.status();
  statement->body = *std::move(body);
  return ParseEnd("endset");
}

absl::Status Parser::ParseParameters(std::vector<Parameter>* parameters) {
  if (absl::Status s = ExpectOperator("("); !s.ok()) return s;
  while (!IsOperator(")")) {
    const size_t offset = Peek().offset;
    auto name = ExpectName("the name of a parameter");
    if (!name.ok()) return name.status();
    for (const Parameter& other : *parameters) {
      if (other.name == *name) return Fail(offset, Words(*name, " is there twice"));
    }
    Parameter parameter{*std::move(name), nullptr};
    if (TakeOperator("=")) {
      auto value = ParseExpression();
      if (!value.ok()) return value.status();
      parameter.value = *std::move(value);
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
  auto body = ParseBlock({end}, offset);
  macro_ = around;
  loops_ = loops_around;
  if (!body.ok()) return body.status();
  macro->body = *std::move(body);
  return ParseEnd(end);
}

absl::Status Parser::ParseMacro(Statement* statement) {
  statement->kind = Statement::Kind::kMacro;
  statement->macro = std::make_unique<Macro>();
  auto name = ExpectName("the name of a macro");
  if (!name.ok()) return name.status();
  statement->macro->name = *std::move(name);
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
  ExprPtr filter = New(Expr::Kind::kFilter, Peek().offset);
  auto name = ExpectName("the name of a filter");
  if (!name.ok()) return name.status();
  filter->name = *std::move(name);
  if (IsOperator("(")) {
    if (absl::Status s = ParseArguments(&filter->arguments); !s.ok()) return s;
  }
  statement->expr = std::move(filter);
  if (absl::Status s = ExpectClose(); !s.ok()) return s;
  auto body = ParseBlock({"endfilter"}, statement->offset);
  if (!body.ok()) return body.status();
  statement->body = *std::move(body);
  return ParseEnd("endfilter");
}

}  // namespace trine::jinja
