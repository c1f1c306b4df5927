// Evaluates the tree of a template. An interpreter renders once. Statements are in statements.cc,
// expressions in expressions.cc.
#pragma once

#include <cstddef>
#include <ctime>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/template/parse/ast.h"
#include "runtime/template/values/budget.h"
#include "runtime/template/values/text.h"
#include "runtime/template/values/value.h"

namespace trine::jinja {

// The variables of a block. Finds the variables of the blocks around it, too. The template's tree
// owns the names.
class Scope : public std::enable_shared_from_this<Scope> {
 public:
  explicit Scope(Scope* around) : around_(around) {}
  void Set(std::string_view name, Value value);
  // Returns undefined if there is no variable of that name.
  Value Get(std::string_view name) const;

 private:
  Scope* const around_;
  std::unordered_map<std::string_view, Value> variables_;
};

class Interpreter {
 public:
  Interpreter(const Limits& limits, const std::tm& now);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  void SetGlobal(std::string_view name, Value value) { globals_->Set(name, std::move(value)); }
  // Appends the text of the template to *out.
  absl::Status Run(const Block& block, Text* out);
  // The offset in the source at which Run failed, if it is known.
  std::optional<size_t> error_offset() const { return error_offset_; }

 private:
  using Result = absl::StatusOr<Value>;
  enum class Flow { kNext, kBreak, kContinue };

  // --- Statements
  absl::StatusOr<Flow> RunBlock(const Block& block, Scope& scope, Text* out);
  absl::StatusOr<Flow> RunStatement(const Statement& statement, Scope& scope, Text* out);
  absl::Status Write(const Value& value, Text* out);
  absl::StatusOr<Flow> RunFor(const Statement& statement, Scope& scope, Text* out);
  Result LoopItems(const Statement& statement, Scope& scope);
  absl::Status RunSet(const Statement& statement, Scope& scope);
  absl::Status RunCallBlock(const Statement& statement, Scope& scope, Text* out);
  absl::StatusOr<Text> Captured(const Block& block, Scope& scope);
  absl::Status Bind(const std::vector<std::string>& names, const Value& value, Scope* scope);
  Result CallMacro(const Macro& macro, Scope* around, const Arguments& arguments);
  absl::Status BindParameters(const Macro& macro, const Arguments& arguments, Scope* scope);
  Result MacroValue(const Macro& macro, Scope& scope);

  // --- Expressions
  Result Evaluate(const Expr& expr, Scope& scope);
  Result EvaluateInner(const Expr& expr, Scope& scope);
  Result EvaluateList(const Expr& expr, Scope& scope);
  Result EvaluateDict(const Expr& expr, Scope& scope);
  Result EvaluateSlice(const Expr& expr, Scope& scope);
  Result EvaluateCall(const Expr& expr, Scope& scope);
  absl::StatusOr<Arguments> EvaluateArguments(const std::vector<Argument>& arguments, Scope& scope);
  absl::Status AddArgument(const Argument& argument, Value value, Arguments* out);

  Budget budget_;
  std::optional<size_t> error_offset_;
  // Shared, so that a macro in a namespace can tell when its scope is gone.
  std::shared_ptr<Scope> globals_;
  // All namespaces. A namespace can hold itself, so the destructor empties them to free the memory.
  std::vector<std::shared_ptr<Namespace>> namespaces_;
};

}  // namespace trine::jinja
