#include <algorithm>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "runtime/template/filters.h"
#include "runtime/template/globals.h"
#include "runtime/template/interpreter.h"
#include "runtime/template/print.h"
#include "runtime/template/words.h"

namespace trine::jinja {
namespace {

using Kind = Value::Kind;

// `loop` of one iteration.
Value LoopValue(const std::vector<Value>& items, size_t i) {
  const int64_t n = static_cast<int64_t>(items.size()), at = static_cast<int64_t>(i);
  Dict loop;
  loop.Set(Text("index"), Value::Int(at + 1));
  loop.Set(Text("index0"), Value::Int(at));
  loop.Set(Text("revindex"), Value::Int(n - at));
  loop.Set(Text("revindex0"), Value::Int(n - at - 1));
  loop.Set(Text("first"), Value::Bool(i == 0));
  loop.Set(Text("last"), Value::Bool(at == n - 1));
  loop.Set(Text("length"), Value::Int(n));
  loop.Set(Text("previtem"), i > 0 ? items[i - 1] : Value());
  loop.Set(Text("nextitem"), i + 1 < items.size() ? items[i + 1] : Value());
  return Value::OfDict(std::move(loop));
}

}  // namespace

void Scope::Set(std::string_view name, Value value) { variables_[name] = std::move(value); }

Value Scope::Get(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->around_) {
    const auto found = scope->variables_.find(name);
    if (found != scope->variables_.end()) return found->second;
  }
  return Value();
}

Interpreter::Interpreter(const Limits& limits, const std::tm& now)
    : budget_(limits), globals_(std::make_shared<Scope>(nullptr)) {
  for (const char* name : {"true", "True"}) globals_->Set(name, Value::Bool(true));
  for (const char* name : {"false", "False"}) globals_->Set(name, Value::Bool(false));
  for (const char* name : {"none", "None"}) globals_->Set(name, Value::None());
  globals_->Set("range", Value::OfFunction(Range));
  globals_->Set("raise_exception", Value::OfFunction(RaiseException));
  globals_->Set("strftime_now",
                Value::OfFunction([now](Budget& budget, const Arguments& arguments) -> Result {
                  if (arguments.positional.empty() || !arguments.positional[0].is(Kind::kString)) {
                    return Wrong("strftime_now() takes a format");
                  }
                  const Text& format = arguments.positional[0].text();
                  return budget.String(Text(FormatTime(format.bytes(), now), format.has_foreign()));
                }));
  globals_->Set("namespace",
                Value::OfFunction([this](Budget& budget, const Arguments& arguments) -> Result {
                  auto members = NamespaceMembers(arguments);
                  if (!members.ok()) return members.status();
                  const auto paid = budget.OfDict(*members);
                  if (!paid.ok()) return paid.status();
                  namespaces_.push_back(std::make_shared<Namespace>());
                  namespaces_.back()->members = *std::move(members);
                  return Value::OfNamespace(namespaces_.back());
                }));
}

Interpreter::~Interpreter() {
  for (const auto& one : namespaces_) one->members = Dict();
}

absl::Status Interpreter::Enter() {
  if (depth_ >= budget_.limits().depth) {
    return TooMuch("the template goes more than ", budget_.limits().depth, " levels deep");
  }
  ++depth_;
  return absl::OkStatus();
}

absl::Status Interpreter::Run(const Block& block, Text* out) {
  return RunBlock(block, *globals_, out).status();
}

absl::StatusOr<Interpreter::Flow> Interpreter::RunBlock(const Block& block, Scope& scope,
                                                        Text* out) {
  if (absl::Status s = Enter(); !s.ok()) return s;
  const absl::Cleanup leave = [this] { Leave(); };
  for (const Statement& statement : block) {
    const absl::Status step = budget_.Step();
    const absl::StatusOr<Flow> flow = step.ok() ? RunStatement(statement, scope, out) : step;
    if (!flow.ok() && !error_offset_) error_offset_ = statement.offset;
    if (!flow.ok() || *flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

absl::Status Interpreter::Write(const Value& value, Text* out) {
  const size_t before = out->memory();
  if (absl::Status s = AppendPrinted(value, budget_, out); !s.ok()) return s;
  return budget_.Output(out->size(), out->memory() - before);
}

absl::StatusOr<Interpreter::Flow> Interpreter::RunStatement(const Statement& statement,
                                                            Scope& scope, Text* out) {
  switch (statement.kind) {
    case Statement::Kind::kText: {
      out->Append(statement.text, false);
      const absl::Status s = budget_.Output(out->size(), statement.text.size());
      if (!s.ok()) return s;
      return Flow::kNext;
    }
    case Statement::Kind::kOutput: {
      const auto value = Evaluate(*statement.expr, scope);
      if (!value.ok()) return value.status();
      if (absl::Status s = Write(*value, out); !s.ok()) return s;
      return Flow::kNext;
    }
    case Statement::Kind::kIf:
      for (const Statement::Branch& branch : statement.branches) {
        if (branch.condition != nullptr) {
          const auto holds = Evaluate(*branch.condition, scope);
          if (!holds.ok()) return holds.status();
          if (!holds->Truthy()) continue;
        }
        return RunBlock(branch.body, scope, out);
      }
      return Flow::kNext;
    case Statement::Kind::kFor:
      return RunFor(statement, scope, out);
    case Statement::Kind::kSet:
      if (absl::Status s = RunSet(statement, scope); !s.ok()) return s;
      return Flow::kNext;
    case Statement::Kind::kMacro:
      scope.Set(statement.macro->name, MacroValue(*statement.macro, scope));
      return Flow::kNext;
    case Statement::Kind::kCall:
      if (absl::Status s = RunCallBlock(statement, scope, out); !s.ok()) return s;
      return Flow::kNext;
    case Statement::Kind::kFilter: {
      auto text = Captured(statement.body, scope);
      if (!text.ok()) return text.status();
      const auto arguments = EvaluateArguments(statement.expr->arguments, scope);
      if (!arguments.ok()) return arguments.status();
      const auto value =
          ApplyFilter(statement.expr->name, Value::String(*std::move(text)), *arguments, budget_);
      if (!value.ok()) return value.status();
      if (absl::Status s = Write(*value, out); !s.ok()) return s;
      return Flow::kNext;
    }
    case Statement::Kind::kBreak:
      return Flow::kBreak;
    case Statement::Kind::kContinue:
      return Flow::kContinue;
  }
  return absl::InternalError("a statement of no kind");
}

absl::Status Interpreter::Bind(const std::vector<std::string>& names, const Value& value,
                               Scope* scope) {
  if (names.size() == 1) {
    scope->Set(names[0], value);
    return absl::OkStatus();
  }
  if (!value.is(Kind::kList)) {
    return Wrong(KindName(value.kind()), " can't be taken apart into ", names.size());
  }
  if (value.list().size() != names.size()) {
    return Wrong("a list of ", value.size(), " can't be taken apart into ", names.size());
  }
  for (size_t i = 0; i < names.size(); ++i) scope->Set(names[i], value.list()[i]);
  return absl::OkStatus();
}

absl::StatusOr<Value> Interpreter::LoopItems(const Statement& statement, Scope& scope) {
  const auto value = Evaluate(*statement.expr, scope);
  if (!value.ok()) return value;
  const auto list = ToList(*value, budget_);
  if (!list.ok() || statement.condition == nullptr) return list;
  std::vector<Value> items;
  for (const Value& item : list->list()) {
    const auto inner = std::make_shared<Scope>(&scope);
    if (absl::Status s = Bind(statement.names, item, inner.get()); !s.ok()) return s;
    const auto wanted = Evaluate(*statement.condition, *inner);
    if (!wanted.ok()) return wanted;
    if (wanted->Truthy()) items.push_back(item);
  }
  return budget_.OfList(std::move(items));
}

absl::StatusOr<Interpreter::Flow> Interpreter::RunFor(const Statement& statement, Scope& scope,
                                                      Text* out) {
  const auto list = LoopItems(statement, scope);
  if (!list.ok()) return list.status();
  const std::vector<Value>& items = list->list();
  for (size_t i = 0; i < items.size(); ++i) {
    if (absl::Status s = budget_.Step(); !s.ok()) return s;
    // What one iteration sets is gone in the next.
    const auto inner = std::make_shared<Scope>(&scope);
    inner->Set("loop", LoopValue(items, i));
    if (absl::Status s = Bind(statement.names, items[i], inner.get()); !s.ok()) return s;
    const auto flow = RunBlock(statement.body, *inner, out);
    if (!flow.ok()) return flow;
    if (*flow == Flow::kBreak) break;
  }
  if (!items.empty()) return Flow::kNext;
  const auto inner = std::make_shared<Scope>(&scope);
  return RunBlock(statement.otherwise, *inner, out);
}

absl::StatusOr<Text> Interpreter::Captured(const Block& block, Scope& scope) {
  Text text;
  const auto flow = RunBlock(block, scope, &text);
  if (!flow.ok()) return flow.status();
  return text;
}

absl::Status Interpreter::RunSet(const Statement& statement, Scope& scope) {
  Value value;
  if (statement.value != nullptr) {
    auto evaluated = Evaluate(*statement.value, scope);
    if (!evaluated.ok()) return evaluated.status();
    value = *std::move(evaluated);
  } else {
    auto text = Captured(statement.body, scope);
    if (!text.ok()) return text.status();
    value = Value::String(*std::move(text));
  }
  if (statement.expr == nullptr) return Bind(statement.names, value, &scope);
  const auto object = Evaluate(*statement.expr, scope);
  if (!object.ok()) return object.status();
  if (!object->is(Kind::kNamespace)) {
    return Wrong(KindName(object->kind()), " is no namespace: its members can't be set");
  }
  if (absl::Status s = budget_.Allocate(sizeof(Dict::Entry)); !s.ok()) return s;
  object->members().members.Set(Text(statement.names[0]), std::move(value));
  return absl::OkStatus();
}

Value Interpreter::MacroValue(const Macro& macro, Scope& scope) {
  const std::weak_ptr<Scope> around = scope.weak_from_this();
  return Value::OfFunction([this, &macro, around](Budget&, const Arguments& arguments) -> Result {
    const std::shared_ptr<Scope> alive = around.lock();
    if (alive == nullptr) {
      return Wrong(macro.name, "() is called where what it was made in is gone");
    }
    return CallMacro(macro, alive.get(), arguments);
  });
}

absl::Status Interpreter::BindParameters(const Macro& macro, const Arguments& arguments,
                                         Scope* scope) {
  const size_t n = macro.parameters.size();
  std::vector<bool> used(arguments.named.size(), false);
  std::vector<const Parameter*> missing;
  for (size_t i = 0; i < n; ++i) {
    const Parameter& parameter = macro.parameters[i];
    scope->Set(parameter.name, Value());
    if (i < arguments.positional.size()) {
      scope->Set(parameter.name, arguments.positional[i]);
      continue;
    }
    bool given = false;
    for (size_t k = 0; k < arguments.named.size(); ++k) {
      if (arguments.named[k].first != parameter.name) continue;
      used[k] = given = true;
      scope->Set(parameter.name, arguments.named[k].second);
    }
    if (!given && parameter.value != nullptr) missing.push_back(&parameter);
  }
  Dict rest;
  for (size_t k = 0; k < arguments.named.size(); ++k) {
    const auto& [name, value] = arguments.named[k];
    if (used[k]) continue;
    if (name == "caller") {
      scope->Set("caller", value);
    } else if (macro.takes_kwargs) {
      rest.Set(Text(name), value);
    } else {
      return Wrong(macro.name, "() takes no argument ", name);
    }
  }
  if (macro.takes_kwargs) scope->Set("kwargs", Value::OfDict(std::move(rest)));
  if (macro.takes_varargs) {
    const size_t taken = std::min(n, arguments.positional.size());
    scope->Set("varargs",
               Value::OfList({arguments.positional.begin() + static_cast<ptrdiff_t>(taken),
                              arguments.positional.end()}));
  } else if (arguments.positional.size() > n) {
    return Wrong(macro.name, "() takes not more than ", n, " arguments");
  }
  // Defaults come last: they may speak of other parameters.
  for (const Parameter* parameter : missing) {
    const auto value = Evaluate(*parameter->value, *scope);
    if (!value.ok()) return value.status();
    scope->Set(parameter->name, *value);
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> Interpreter::CallMacro(const Macro& macro, Scope* around,
                                             const Arguments& arguments) {
  const auto scope = std::make_shared<Scope>(around);
  if (absl::Status s = BindParameters(macro, arguments, scope.get()); !s.ok()) return s;
  auto text = Captured(macro.body, *scope);
  if (!text.ok()) return text.status();
  return Value::String(*std::move(text));
}

absl::Status Interpreter::RunCallBlock(const Statement& statement, Scope& scope, Text* out) {
  auto arguments = EvaluateArguments(statement.expr->arguments, scope);
  if (!arguments.ok()) return arguments.status();
  arguments->named.emplace_back("caller", MacroValue(*statement.macro, scope));
  const auto callee = Evaluate(*statement.expr->children[0], scope);
  if (!callee.ok()) return callee.status();
  if (!callee->is(Kind::kFunction)) {
    return Wrong(KindName(callee->kind()), " can't be called");
  }
  const auto value = callee->function()(budget_, *arguments);
  if (!value.ok()) return value.status();
  return Write(*value, out);
}

}  // namespace trine::jinja
