// A grammar as a pushdown automaton over bytes. Each rule is a finite automaton. Its edges read a
// byte, or call a rule: then the state to return to is put on a stack (StackTable) until that rule
// ends. There are no edges that read nothing. Immutable once built; any thread may use it.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar/grammar.h"
#include "runtime/constraint/grammar/token_trie.h"

namespace trine::constraint {

using ByteSet = std::bitset<256>;

class Automaton {
 public:
  // The state at the bottom of every stack. It belongs to no rule. If it is on top, nothing is left
  // to read.
  static constexpr uint32_t kBottom = 0;

  // Reads a byte from `low` to `high`, then continues at `to`.
  struct ByteEdge {
    uint8_t low;
    uint8_t high;
    uint32_t to;
    friend auto operator<=>(const ByteEdge&, const ByteEdge&) = default;
  };
  // Reads a text of the rule that begins at `start`, then continues at `to`. A call never reads the
  // empty text: if the rule may be empty, the calling state has the edges of `to` as well.
  struct CallEdge {
    uint32_t start;
    uint32_t to;
    friend auto operator<=>(const CallEdge&, const CallEdge&) = default;
  };

  uint32_t size() const { return static_cast<uint32_t>(accepts_.size()); }  // states
  uint32_t root() const { return root_; }  // the state in which the root rule begins
  // Return the edges that leave a state.
  std::span<const ByteEdge> bytes(uint32_t state) const {
    return std::span(bytes_).subspan(byte_begin_[state],
                                     byte_begin_[state + 1] - byte_begin_[state]);
  }
  std::span<const CallEdge> calls(uint32_t state) const {
    return std::span(calls_).subspan(call_begin_[state],
                                     call_begin_[state + 1] - call_begin_[state]);
  }
  // Returns whether the state's rule may end here.
  bool accepts(uint32_t state) const { return accepts_[state]; }
  // Returns whether the state's rule can do nothing but end here. Such a state need not be put on a
  // stack.
  bool only_accepts(uint32_t state) const {
    return accepts_[state] && bytes(state).empty() && calls(state).empty();
  }

  // Returns a number above the levels of all start states that `state` calls. So whoever follows
  // calls from the highest level down comes to a state after all its callers.
  uint32_t level(uint32_t state) const { return levels_[state]; }

  // Bytes that no edge tells apart have the same class.
  uint8_t byte_class(uint8_t byte) const { return byte_class_[byte]; }
  uint32_t byte_classes() const { return n_classes_; }

 private:
  friend class AutomatonBuilder;
  uint32_t root_ = 0;
  std::vector<bool> accepts_;
  std::vector<uint32_t> levels_;
  std::vector<uint32_t> byte_begin_, call_begin_;  // one more entry than states
  std::vector<ByteEdge> bytes_;
  std::vector<CallEdge> calls_;
  std::array<uint8_t, 256> byte_class_{};
  uint32_t n_classes_ = 1;
};

// Says what to do about dead rules, which have no finite text: refuse the grammar, or leave them
// out. A grammar whose root is dead is always refused.
enum class DeadRules { kRefuse, kLeaveOut };

// Builds an automaton for the texts of the grammar that have only bytes of `bytes`. Returns
// INVALID_ARGUMENT for left recursion (a rule that begins with itself), for dead rules that are to
// be refused, and if the grammar is too large.
absl::StatusOr<Automaton> BuildAutomaton(const Grammar& grammar, const ByteSet& bytes,
                                         DeadRules dead_rules);

// The cost of a state: a number of tokens that is enough to get from the state to the end of its
// rule, through all rules that are called on the way.
inline constexpr int64_t kNeverFinishes = INT64_MAX;     // no text leads to the end
inline constexpr int64_t kCostLimit = int64_t{1} << 40;  // larger costs are cut to this

inline int64_t AddCosts(int64_t a, int64_t b) {
  if (a == kNeverFinishes || b == kNeverFinishes) return kNeverFinishes;
  return std::min(a + b, kCostLimit);
}

// Returns the cost of each state. Fewer tokens than the cost may do, because each byte counts as a
// token. Only where the grammar writes a text out do bytes count as a longer token of `trie`; null:
// nowhere. Every state that is not at the end has a token that leads to a state of lower cost.
std::vector<int64_t> FinishCosts(const Automaton& automaton, const TokenTrie* trie);

}  // namespace trine::constraint
