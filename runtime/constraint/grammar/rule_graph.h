// The rules of a grammar as one graph with empty moves. The automaton is built from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/constraint/grammar/automaton.h"
#include "runtime/constraint/grammar/grammar.h"

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

// Groups edges by the state that they leave. Edges of one state stay in the order given.
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

// Makes the graph of all rules that the root uses, directly or through other rules. Returns
// INVALID_ARGUMENT if the graph gets too large.
absl::StatusOr<RuleGraph> DrawRules(const Grammar& grammar, const ByteSet& bytes);

}  // namespace trine::constraint
