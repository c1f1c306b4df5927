#include "runtime/constraint/grammar.h"

#include <utility>

namespace trine::constraint {
namespace {

ExprPtr Make(Expr expr) { return std::make_shared<const Expr>(std::move(expr)); }

}  // namespace

ExprPtr Text(std::string bytes) {
  Expr expr;
  expr.kind = Expr::Kind::kText;
  expr.text = std::move(bytes);
  return Make(std::move(expr));
}

ExprPtr Character(CodePointSet set) {
  Expr expr;
  expr.kind = Expr::Kind::kCharacter;
  expr.set = std::move(set);
  return Make(std::move(expr));
}

ExprPtr Sequence(std::vector<ExprPtr> parts) {
  if (parts.size() == 1) return parts.front();
  Expr expr;
  expr.kind = Expr::Kind::kSequence;
  expr.parts = std::move(parts);
  return Make(std::move(expr));
}

ExprPtr Choice(std::vector<ExprPtr> parts) {
  if (parts.size() == 1) return parts.front();
  Expr expr;
  expr.kind = Expr::Kind::kChoice;
  expr.parts = std::move(parts);
  return Make(std::move(expr));
}

ExprPtr Repeat(ExprPtr part, int64_t min, int64_t max) {
  Expr expr;
  expr.kind = Expr::Kind::kRepeat;
  expr.parts = {std::move(part)};
  expr.min = min;
  expr.max = max;
  return Make(std::move(expr));
}

ExprPtr Optional(ExprPtr part) { return Repeat(std::move(part), 0, 1); }

ExprPtr RuleRef(int32_t rule) {
  Expr expr;
  expr.kind = Expr::Kind::kRule;
  expr.rule = rule;
  return Make(std::move(expr));
}

ExprPtr Machine(ExprAutomaton automaton) {
  Expr expr;
  expr.kind = Expr::Kind::kMachine;
  expr.automaton = std::make_shared<const ExprAutomaton>(std::move(automaton));
  return Make(std::move(expr));
}

}  // namespace trine::constraint
