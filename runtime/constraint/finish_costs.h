// How far it is to the end: the least number of tokens that brings a state of the automaton to the
// end of its rule, called rules included.
#ifndef TRINE_RUNTIME_CONSTRAINT_FINISH_COSTS_H_
#define TRINE_RUNTIME_CONSTRAINT_FINISH_COSTS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/constraint/automaton.h"
#include "runtime/constraint/token_trie.h"

namespace trine::constraint {

inline constexpr int64_t kNeverFinishes = INT64_MAX;
inline constexpr int64_t kCostLimit = int64_t{1} << 40;  // costs beyond it are as good as it

inline int64_t AddCosts(int64_t a, int64_t b) {
  if (a == kNeverFinishes || b == kNeverFinishes) return kNeverFinishes;
  return std::min(a + b, kCostLimit);
}

// One per state; kNeverFinishes where no text leads to the end. It is a number of tokens that is
// enough: every byte is a token, and runs of bytes the grammar writes out are taken as the longest
// tokens there are. Without a trie every byte is one. A state that is not at the end has a token
// that leads to one whose cost is less.
std::vector<int64_t> FinishCosts(const Automaton& automaton, const TokenTrie* trie);

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_FINISH_COSTS_H_
