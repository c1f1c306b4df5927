#include <algorithm>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "runtime/template/eval/builtins.h"
#include "runtime/template/eval/interpreter.h"
#include "runtime/template/values/budget.h"
#include "runtime/template/values/print.h"

namespace trine::jinja {
namespace {

using Kind = Value::Kind;

// The bytes of a variable in its scope.
constexpr int64_t kVariableBytes = 64;

// Returns the variable `loop` of one iteration.
absl::StatusOr<Value> LoopValue(const std::vector<Value>& items, size_t i, Budget& budget) {
  const int64_t n = static_cast<int64_t>(items.size()), at = static_cast<int64_t>(i);
  const std::pair<const char*, Value> members[] = {
      {"index", Value::Int(at + 1)},
      {"index0", Value::Int(at)},
      {"revindex", Value::Int(n - at)},
      {"revindex0", Value::Int(n - at - 1)},
      {"first", Value::Bool(i == 0)},
      {"last", Value::Bool(at == n - 1)},
      {"length", Value::Int(n)},
      {"previtem", i > 0 ? items[i - 1] : Value()},
      {"nextitem", i + 1 < items.size() ? items[i + 1] : Value()},
  };
  Dict loop;
  for (const auto& [name, value] : members) {
    if (absl::Status s = budget.Set(Text(name), value, &loop); !s.ok()) return s;
  }
  return budget.OfDict(std::move(loop));
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
  globals_->Set("range", Given::OfFunction(Range));
  globals_->Set("raise_exception", Given::OfFunction(RaiseException));
  globals_->Set("strftime_now",
                Given::OfFunction([now](Budget& budget, const Arguments& arguments) -> Result {
                  if (arguments.positional.empty() || !arguments.positional[0].is(Kind::kString)) {
                    return Wrong("strftime_now() takes a format");
                  }
                  const Text& format = arguments.positional[0].text();
                  auto text = FormatTime(format.bytes(), now, budget);
                  if (!text.ok()) return text.status();
                  return budget.String(Text(*std::move(text), format.has_foreign()));
                }));
  globals_->Set("namespace",
                Given::OfFunction([this](Budget& budget, const Arguments& arguments) -> Result {
                  auto members = NamespaceMembers(arguments, budget);
                  if (!members.ok()) return members.status();
                  namespaces_.push_back(std::make_shared<Namespace>());
                  namespaces_.back()->members = *std::move(members);
                  return budget.OfNamespace(namespaces_.back());
                }));
}

Interpreter::~Interpreter() {
  for (const auto& one : namespaces_) one->members = Dict();
}

absl::Status Interpreter::Run(const Block& block, Text* out) {
  return RunBlock(block, *globals_, out).status();
}

absl::StatusOr<Interpreter::Flow> Interpreter::RunBlock(const Block& block, Scope& scope,
                                                        Text* out) {
  if (absl::Status s = budget_.Enter(); !s.ok()) return s;
  const absl::Cleanup leave = [this] { budget_.Leave(); };
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
      if (absl::Status s = budget_.Output(out->size(), statement.text.size()); !s.ok()) return s;
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
    case Statement::Kind::kMacro: {
      auto macro = MacroValue(*statement.macro, scope);
      if (!macro.ok()) return macro.status();
      scope.Set(statement.macro->name, *std::move(macro));
      return Flow::kNext;
    }
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
  const int64_t n = static_cast<int64_t>(names.size());
  if (absl::Status s = budget_.Allocate(n * kVariableBytes); !s.ok()) return s;
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
    // Each iteration has its own scope.
    const auto inner = std::make_shared<Scope>(&scope);
    auto loop = LoopValue(items, i, budget_);
    if (!loop.ok()) return loop.status();
    inner->Set("loop", *std::move(loop));
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
  return budget_.Set(Text(statement.names[0]), std::move(value), &object->members().members);
}

absl::StatusOr<Value> Interpreter::MacroValue(const Macro& macro, Scope& scope) {
  const std::weak_ptr<Scope> around = scope.weak_from_this();
  return budget_.OfFunction([this, &macro, around](Budget&, const Arguments& arguments) -> Result {
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
      if (arguments.named[k].first.bytes() != parameter.name) continue;
      used[k] = given = true;
      scope->Set(parameter.name, arguments.named[k].second);
    }
    if (!given && parameter.value != nullptr) missing.push_back(&parameter);
  }
  Dict rest;
  for (size_t k = 0; k < arguments.named.size(); ++k) {
    const auto& [name, value] = arguments.named[k];
    if (used[k]) continue;
    if (name.bytes() == "caller") {
      scope->Set("caller", value);
    } else if (macro.takes_kwargs) {
      if (absl::Status s = budget_.Set(name, value, &rest); !s.ok()) return s;
    } else {
      return Wrong(macro.name, "() takes no argument ", name.bytes());
    }
  }
  if (macro.takes_kwargs) {
    auto kwargs = budget_.OfDict(std::move(rest));
    if (!kwargs.ok()) return kwargs.status();
    scope->Set("kwargs", *std::move(kwargs));
  }
  if (macro.takes_varargs) {
    const size_t taken = std::min(n, arguments.positional.size());
    auto varargs = budget_.OfList(
        {arguments.positional.begin() + static_cast<ptrdiff_t>(taken), arguments.positional.end()});
    if (!varargs.ok()) return varargs.status();
    scope->Set("varargs", *std::move(varargs));
  } else if (arguments.positional.size() > n) {
    return Wrong(macro.name, "() takes not more than ", n, " arguments");
  }
  // Evaluates defaults last, because they may use other parameters.
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
  auto caller = MacroValue(*statement.macro, scope);
  if (!caller.ok()) return caller.status();
  arguments->named.emplace_back(Text("caller"), *std::move(caller));
  const auto callee = Evaluate(*statement.expr->children[0], scope);
  if (!callee.ok()) return callee.status();
  if (!callee->is(Kind::kFunction)) return Wrong(KindName(callee->kind()), " can't be called");
  const auto value = callee->function()(budget_, *arguments);
  if (!value.ok()) return value.status();
  return Write(*value, out);
}

}  // namespace trine::jinja
