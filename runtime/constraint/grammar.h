// A context-free grammar over text: what the GBNF parser and the JSON Schema compiler make, and the
// automaton is built from.
#ifndef TRINE_RUNTIME_CONSTRAINT_GRAMMAR_H_
#define TRINE_RUNTIME_CONSTRAINT_GRAMMAR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/constraint/code_points.h"

namespace trine::constraint {

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

// A finite automaton whose edges are labelled with expressions; it starts in state 0.
struct ExprAutomaton {
  struct Edge {
    int32_t from;
    int32_t to;
    ExprPtr label;
  };
  std::vector<bool> accepts;  // one per state
  std::vector<Edge> edges;
};

struct Expr {
  enum class Kind { kText, kCharacter, kSequence, kChoice, kRepeat, kRule, kMachine };
  Kind kind = Kind::kText;
  std::string text;            // kText: these bytes
  CodePointSet set;            // kCharacter: one of these
  std::vector<ExprPtr> parts;  // kSequence, kChoice; the one repeated
  int64_t min = 0;             // kRepeat
  int64_t max = kNoLimit;
  int32_t rule = -1;  // kRule
  std::shared_ptr<const ExprAutomaton> automaton;

  static constexpr int64_t kNoLimit = -1;
};

ExprPtr Text(std::string bytes);
ExprPtr Character(CodePointSet set);
ExprPtr Sequence(std::vector<ExprPtr> parts);
ExprPtr Choice(std::vector<ExprPtr> parts);  // of none: no text at all matches
ExprPtr Repeat(ExprPtr part, int64_t min, int64_t max);
ExprPtr Optional(ExprPtr part);
ExprPtr RuleRef(int32_t rule);
ExprPtr Machine(ExprAutomaton automaton);

struct Grammar {
  struct Rule {
    std::string name;  // for messages
    ExprPtr body;
  };
  std::vector<Rule> rules;
  int32_t root = 0;
};

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_GRAMMAR_H_
