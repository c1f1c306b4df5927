// A regular expression as an automaton over characters with empty moves: a step on the way to a
// CharDfa.
#ifndef TRINE_RUNTIME_CONSTRAINT_CHAR_NFA_H_
#define TRINE_RUNTIME_CONSTRAINT_CHAR_NFA_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar.h"

namespace trine::constraint {

class CharNfa {
 public:
  struct Edge {
    CodePointRange range;
    int32_t to;
  };

  // Of an expression without rules and machines. INVALID_ARGUMENT when it has too many states.
  static absl::StatusOr<CharNfa> Of(const Expr& expr);

  size_t size() const { return states_.size(); }
  int32_t start() const { return 0; }
  int32_t accept() const { return 1; }
  const std::vector<Edge>& edges(int32_t state) const {
    return states_[static_cast<size_t>(state)].edges;
  }
  // With all states that empty moves lead to; ascending.
  std::vector<int32_t> Close(std::vector<int32_t> states) const;

 private:
  struct State {
    std::vector<Edge> edges;
    std::vector<int32_t> empty;
  };

  bool TooLarge() const;
  int32_t NewState();
  void Add(const Expr& expr, int32_t from, int32_t to);

  std::vector<State> states_;
  size_t edges_ = 0;  // of sets of characters
};

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_CHAR_NFA_H_
