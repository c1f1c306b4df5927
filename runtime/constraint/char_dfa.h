// Deterministic finite automata over characters: regular expressions that can be intersected and
// subtracted, for strings of a JSON Schema.
#ifndef TRINE_RUNTIME_CONSTRAINT_CHAR_DFA_H_
#define TRINE_RUNTIME_CONSTRAINT_CHAR_DFA_H_

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar.h"

namespace trine::constraint {

class CharDfa {
 public:
  struct Edge {
    CodePointRange range;
    int32_t to;
    friend bool operator==(const Edge&, const Edge&) = default;
  };
  struct State {
    bool accepts = false;
    std::vector<Edge> edges;  // ascending, disjoint; a character in none of them ends it all
  };

  CharDfa() = default;  // no text at all
  // The first state is the start.
  explicit CharDfa(std::vector<State> states) : states_(std::move(states)) {}
  // Of an expression without rules and machines. INVALID_ARGUMENT when it has too many states.
  static absl::StatusOr<CharDfa> Of(const Expr& expr);
  static CharDfa Any();                              // every text
  static CharDfa Lengths(int64_t min, int64_t max);  // in characters; max may be Expr::kNoLimit

  absl::StatusOr<CharDfa> Intersect(const CharDfa& other) const;
  absl::StatusOr<CharDfa> Minus(const CharDfa& other) const;

  bool Accepts(std::string_view text) const;  // UTF-8
  bool empty() const { return states_.empty(); }
  const std::vector<State>& states() const { return states_; }

  // As an expression, with `write` saying how characters are written.
  ExprPtr ToExpr(const std::function<ExprPtr(const CodePointSet&)>& write) const;

 private:
  template <class Accept>
  absl::StatusOr<CharDfa> Product(const CharDfa& other, bool other_may_die, Accept accept) const;
  // Without states that lead nowhere, and with the least number of those that stay.
  void Minimize();
  void RemoveDead();

  std::vector<State> states_;  // the first is the start; none: no text at all
};

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_CHAR_DFA_H_
