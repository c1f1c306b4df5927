// The grammar as a pushdown automaton over bytes: one finite automaton per rule, without empty
// moves, whose edges read a byte or call another rule. Immutable once built.
#ifndef TRINE_RUNTIME_CONSTRAINT_AUTOMATON_H_
#define TRINE_RUNTIME_CONSTRAINT_AUTOMATON_H_

#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar.h"

namespace trine::constraint {

using ByteSet = std::bitset<256>;

class Automaton {
 public:
  // Below every stack; in a set of stacks it stands for the one with nothing left to do.
  static constexpr uint32_t kBottom = 0;

  struct ByteEdge {
    uint8_t low;
    uint8_t high;
    uint32_t to;
    friend auto operator<=>(const ByteEdge&, const ByteEdge&) = default;
  };
  // Reads what the rule that begins at `start` reads, then goes on at `to`. A rule that may read
  // nothing is called only for what it reads: the edges of `to` are then edges of the caller too.
  struct CallEdge {
    uint32_t start;
    uint32_t to;
    friend auto operator<=>(const CallEdge&, const CallEdge&) = default;
  };

  uint32_t size() const { return static_cast<uint32_t>(accepts_.size()); }
  uint32_t root() const { return root_; }
  std::span<const ByteEdge> bytes(uint32_t state) const {
    return std::span(bytes_).subspan(byte_begin_[state],
                                     byte_begin_[state + 1] - byte_begin_[state]);
  }
  std::span<const CallEdge> calls(uint32_t state) const {
    return std::span(calls_).subspan(call_begin_[state],
                                     call_begin_[state + 1] - call_begin_[state]);
  }
  // The rule may end here.
  bool accepts(uint32_t state) const { return accepts_[state]; }
  // The rule can only end here: nobody need come back to it.
  bool only_accepts(uint32_t state) const {
    return accepts_[state] && bytes(state).empty() && calls(state).empty();
  }

  // Above the levels of all starts that the state calls.
  uint32_t level(uint32_t state) const { return levels_[state]; }

  // Bytes that no edge tells apart have the same class.
  uint8_t byte_class(uint8_t byte) const { return byte_class_[byte]; }
  uint32_t byte_classes() const { return n_classes_; }
  uint8_t first_of_class(uint32_t c) const { return first_of_class_[c]; }

 private:
  friend class AutomatonBuilder;
  uint32_t root_ = 0;
  std::vector<bool> accepts_;
  std::vector<uint32_t> levels_;
  std::vector<uint32_t> byte_begin_, call_begin_;  // one more than states
  std::vector<ByteEdge> bytes_;
  std::vector<CallEdge> calls_;
  std::array<uint8_t, 256> byte_class_{};
  std::array<uint8_t, 256> first_of_class_{};
  uint32_t n_classes_ = 1;
};

// Whether parts of a grammar that can produce no finite text are refused, or left out as long as
// the root is not among them.
enum class DeadRules { kRefuse, kLeaveOut };

// Reads only `bytes`: text with others in it is taken out of the language. INVALID_ARGUMENT for
// left recursion, for what can produce no finite text, and for a grammar that is too large.
absl::StatusOr<Automaton> BuildAutomaton(const Grammar& grammar, const ByteSet& bytes,
                                         DeadRules dead_rules);

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_AUTOMATON_H_
