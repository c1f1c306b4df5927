// The grammar's rules drawn as one graph with empty moves, from which the automaton is made.
#ifndef TRINE_RUNTIME_CONSTRAINT_RULE_GRAPH_H_
#define TRINE_RUNTIME_CONSTRAINT_RULE_GRAPH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/constraint/automaton.h"
#include "runtime/constraint/grammar.h"

namespace trine::constraint {

struct RuleGraph {
  struct Byte {
    uint32_t from;
    uint8_t low;
    uint8_t high;
    uint32_t to;
  };
  struct Call {
    uint32_t from;
    int32_t rule;
    uint32_t to;
  };
  struct Empty {
    uint32_t from;
    uint32_t to;
  };
  struct Ends {
    uint32_t start = kNone;  // kNone: the rule is not used
    uint32_t accept = kNone;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t states = 0;
  std::vector<Byte> bytes;
  std::vector<Call> calls;
  std::vector<Empty> empties;
  std::vector<Ends> rules;  // one per rule of the grammar
};

// Of the rules that the root leads to. INVALID_ARGUMENT when it grows too large.
absl::StatusOr<RuleGraph> DrawRules(const Grammar& grammar, const ByteSet& bytes);

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_RULE_GRAPH_H_
