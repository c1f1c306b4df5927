// A context-free grammar over text. The GBNF parser and the JSON Schema compiler make grammars, and
// an Automaton is built from a grammar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace trine::constraint {

// Sets of Unicode characters, as ranges. Surrogates are not characters and are never in a set.
inline constexpr uint32_t kLastCodePoint = 0x10FFFF;

struct CodePointRange {
  uint32_t low;
  uint32_t high;  // inclusive
  friend bool operator==(const CodePointRange&, const CodePointRange&) = default;
};

class CodePointSet {
 public:
  CodePointSet() = default;
  CodePointSet(std::initializer_list<CodePointRange> ranges) {
    for (const CodePointRange& r : ranges) Add(r.low, r.high);
  }
  static CodePointSet All() { return {{0, kLastCodePoint}}; }

  void Add(uint32_t low, uint32_t high);
  void Add(const CodePointSet& other);
  CodePointSet Complement() const;
  CodePointSet Intersect(const CodePointSet& other) const;
  bool Contains(uint32_t code_point) const;
  bool empty() const { return ranges_.empty(); }
  // Ascending, with gaps between them.
  const std::vector<CodePointRange>& ranges() const { return ranges_; }
  friend bool operator==(const CodePointSet&, const CodePointSet&) = default;

 private:
  std::vector<CodePointRange> ranges_;
};

// Ranges of bytes: each choice of one byte per range is the UTF-8 of a character.
struct Utf8Sequence {
  int length = 0;
  struct {
    uint8_t low;
    uint8_t high;
  } bytes[4] = {};
};

// Returns the UTF-8 of the set. Each character belongs to exactly one of the sequences.
std::vector<Utf8Sequence> Utf8Sequences(const CodePointSet& set);

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;

// A finite automaton whose edges are labelled with expressions. It starts in state 0.
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
  std::string text = {};            // kText: the bytes
  CodePointSet set = {};            // kCharacter: the characters, of which one is read
  std::vector<ExprPtr> parts = {};  // kSequence, kChoice: the parts; kRepeat: the repeated part
  int64_t min = 0;                  // kRepeat: the fewest repetitions
  int64_t max = kNoLimit;           // kRepeat: the most repetitions
  int32_t rule = -1;                // kRule: the rule's number
  std::shared_ptr<const ExprAutomaton> automaton = nullptr;

  static constexpr int64_t kNoLimit = -1;
};

ExprPtr Text(std::string bytes);
ExprPtr Character(CodePointSet set);
ExprPtr Sequence(std::vector<ExprPtr> parts);
ExprPtr Choice(std::vector<ExprPtr> parts);  // without parts it matches no text
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

// Parses GBNF, in which users write grammars (docs/constrained-output.md has the syntax). Returns
// INVALID_ARGUMENT, with line and column, for a syntax error or a rule that isn't defined. Returns
// INVALID_ARGUMENT without them if there is no rule called root.
absl::StatusOr<Grammar> ParseGbnf(std::string_view text);

// Parses a regular expression of JSON Schema's `pattern`, as far as ECMA-262's expressions can be
// finite automata. Returns an expression, without rules, of the texts that contain a match of the
// pattern: an alternative without ^ or $ may have any text before or after it. Returns
// INVALID_ARGUMENT if the pattern is malformed or has look-around, back references, \b or \p{...},
// which are not supported.
absl::StatusOr<ExprPtr> ParseRegex(std::string_view pattern);

// Adds paths from `from` to `to` that read exactly the texts of the expression. `graph` must have
// the methods TooLarge(), NewState() and AddEmpty(from, to), and AddLeaf(expr, from, to) for
// expressions that are no sequence, choice or repetition.
template <class Graph, class State>
void AddPaths(const Expr& expr, State from, State to, Graph* graph) {
  if (graph->TooLarge()) return;
  const auto step = [&](const Expr& part) {
    const State next = graph->NewState();
    AddPaths(part, from, next, graph);
    from = next;
  };
  switch (expr.kind) {
    case Expr::Kind::kSequence:
      if (expr.parts.empty()) return graph->AddEmpty(from, to);
      for (size_t i = 0; i + 1 < expr.parts.size(); ++i) step(*expr.parts[i]);
      return AddPaths(*expr.parts.back(), from, to, graph);
    case Expr::Kind::kChoice:
      for (const ExprPtr& part : expr.parts) AddPaths(*part, from, to, graph);
      return;
    case Expr::Kind::kRepeat: {
      const Expr& part = *expr.parts.front();
      for (int64_t i = 0; i < expr.min && !graph->TooLarge(); ++i) step(part);
      if (expr.max == Expr::kNoLimit) {
        const State loop = graph->NewState();
        graph->AddEmpty(from, loop);
        AddPaths(part, loop, loop, graph);
        return graph->AddEmpty(loop, to);
      }
      for (int64_t i = expr.min; i < expr.max && !graph->TooLarge(); ++i) {
        graph->AddEmpty(from, to);
        step(part);
      }
      return graph->AddEmpty(from, to);
    }
    default:
      return graph->AddLeaf(expr, from, to);
  }
}

}  // namespace trine::constraint
