// Deterministic finite automata over characters. They stand for the regular expressions of a JSON
// Schema's strings, because automata can be intersected and subtracted.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar/grammar.h"

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
    std::vector<Edge> edges;  // ascending, disjoint; a character in none of them is refused
  };

  CharDfa() = default;  // accepts no text
  // The automaton starts in the first state.
  explicit CharDfa(std::vector<State> states) : states_(std::move(states)) {}
  // Makes the automaton of an expression without rules and machines. Returns INVALID_ARGUMENT if it
  // would have too many states.
  static absl::StatusOr<CharDfa> Of(const Expr& expr);
  static CharDfa Any();  // accepts every text
  // Accepts texts of `min` to `max` characters. `max` may be Expr::kNoLimit.
  static CharDfa Lengths(int64_t min, int64_t max);

  absl::StatusOr<CharDfa> Intersect(const CharDfa& other) const;
  absl::StatusOr<CharDfa> Minus(const CharDfa& other) const;

  bool Accepts(std::string_view text) const;  // UTF-8
  bool empty() const { return states_.empty(); }
  const std::vector<State>& states() const { return states_; }

  // Returns an expression of the texts that the automaton accepts. `write` returns the expression
  // of a set of characters.
  ExprPtr ToExpr(const std::function<ExprPtr(const CodePointSet&)>& write) const;

 private:
  template <class Accept>
  absl::StatusOr<CharDfa> Product(const CharDfa& other, bool other_may_die, Accept accept) const;
  // Removes states that lead nowhere and merges equivalent ones.
  void Minimize();
  void RemoveDead();

  std::vector<State> states_;  // starts in the first one; empty: accepts no text
};

}  // namespace trine::constraint
