// The rules of a grammar as one graph, from which BuildAutomaton makes an Automaton. A path from a
// rule's start to its accepting state reads a text of the rule. Unlike an Automaton, the graph has
// empty moves: edges that read nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar/automaton.h"
#include "runtime/constraint/grammar/grammar.h"

namespace trine::constraint {

// States are numbered from 0.
struct RuleGraph {
  // An edge that reads a byte from `low` to `high`.
  struct Byte {
    uint32_t from;
    uint8_t low;
    uint8_t high;
    uint32_t to;
  };
  // An edge that reads a text of a rule.
  struct Call {
    uint32_t from;
    int32_t rule;
    uint32_t to;
  };
  // An edge that reads nothing.
  struct Empty {
    uint32_t from;
    uint32_t to;
  };
  // The states in which a rule begins and ends. kNone: the root does not use the rule.
  struct Ends {
    uint32_t start = kNone;
    uint32_t accept = kNone;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t states = 0;  // the number of states
  std::vector<Byte> bytes;
  std::vector<Call> calls;
  std::vector<Empty> empties;
  std::vector<Ends> rules;  // by rule of the grammar
};

// Finds the edges that leave a state. Keeps copies of the edges, in the order given.
template <class Edge>
class EdgesFrom {
 public:
  EdgesFrom(uint32_t states, const std::vector<Edge>& edges)
      : begin_(states + size_t{1}), edges_(edges.size()) {
    for (const Edge& edge : edges) ++begin_[edge.from + size_t{1}];
    for (uint32_t s = 0; s < states; ++s) begin_[s + size_t{1}] += begin_[s];
    std::vector<size_t> next(begin_.begin(), begin_.end() - 1);
    for (const Edge& edge : edges) edges_[next[edge.from]++] = edge;
  }
  std::span<const Edge> operator[](uint32_t state) const {
    return std::span(edges_).subspan(begin_[state], begin_[state + size_t{1}] - begin_[state]);
  }

 private:
  std::vector<size_t> begin_;
  std::vector<Edge> edges_;
};

// Makes the graph of all rules that the root uses, directly or through other rules. Has edges for
// the bytes of `bytes` alone. Returns INVALID_ARGUMENT if the graph gets too large.
absl::StatusOr<RuleGraph> DrawRules(const Grammar& grammar, const ByteSet& bytes);

}  // namespace trine::constraint
