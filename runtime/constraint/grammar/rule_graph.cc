#include "runtime/constraint/grammar/rule_graph.h"

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "runtime/base/invalid.h"

namespace trine::constraint {
namespace {

constexpr uint32_t kMaxRuleStates = 1 << 19;
constexpr size_t kMaxRuleEdges = 1 << 21;

class Drawer {
 public:
  Drawer(const Grammar& grammar, const ByteSet& bytes) : grammar_(grammar), allowed_(bytes) {}

  absl::StatusOr<RuleGraph> Draw() {
    graph_.rules.resize(grammar_.rules.size());
    Reach(grammar_.root);
    while (!waiting_.empty() && !TooLarge()) {
      const int32_t rule = waiting_.back();
      waiting_.pop_back();
      const RuleGraph::Ends ends = graph_.rules[static_cast<size_t>(rule)];
      AddPaths(*grammar_.rules[static_cast<size_t>(rule)].body, ends.start, ends.accept, this);
    }
    if (TooLarge()) {
      return Invalid("grammar: with its repetitions written out it has more than ", kMaxRuleStates,
                     " states: ask for smaller counts or lengths");
    }
    return std::move(graph_);
  }

  // The methods that AddPaths needs.
  bool TooLarge() const {
    return graph_.states > kMaxRuleStates || graph_.bytes.size() > kMaxRuleEdges ||
           graph_.calls.size() > kMaxRuleEdges || graph_.empties.size() > kMaxRuleEdges;
  }

  uint32_t NewState() { return graph_.states++; }
  void AddEmpty(uint32_t from, uint32_t to) { graph_.empties.push_back({from, to}); }
  void AddLeaf(const Expr& expr, uint32_t from, uint32_t to) {
    if (expr.kind == Expr::Kind::kText) {
      AddText(expr.text, from, to);
    } else if (expr.kind == Expr::Kind::kCharacter) {
      AddCharacter(expr.set, from, to);
    } else if (expr.kind == Expr::Kind::kRule) {
      Reach(expr.rule);
      graph_.calls.push_back({from, expr.rule, to});
    } else {
      AddAutomaton(*expr.automaton, from, to);
    }
  }

 private:
  void Reach(int32_t rule) {
    RuleGraph::Ends& ends = graph_.rules[static_cast<size_t>(rule)];
    if (ends.start != RuleGraph::kNone) return;
    ends.start = NewState();
    ends.accept = NewState();
    waiting_.push_back(rule);
  }

  void AddByteRange(uint32_t from, uint8_t low, uint8_t high, uint32_t to) {
    for (uint32_t c = low; c <= high; ++c) {
      if (!allowed_[c]) continue;
      const uint32_t begin = c;
      while (c < high && allowed_[c + 1]) ++c;
      graph_.bytes.push_back({from, static_cast<uint8_t>(begin), static_cast<uint8_t>(c), to});
    }
  }

  void AddText(const std::string& text, uint32_t from, uint32_t to) {
    for (size_t i = 0; i < text.size(); ++i) {
      const uint32_t next = i + 1 == text.size() ? to : NewState();
      const auto byte = static_cast<uint8_t>(text[i]);
      AddByteRange(from, byte, byte, next);
      from = next;
    }
    if (text.empty()) AddEmpty(from, to);
  }

  // Sequences that end in the same byte ranges share their last states.
  void AddCharacter(const CodePointSet& set, uint32_t from, uint32_t to) {
    std::map<std::string, uint32_t> by_rest;  // states by the ranges still to be read
    for (const Utf8Sequence& sequence : Utf8Sequences(set)) {
      uint32_t at = from;
      for (int i = 0; i < sequence.length; ++i) {
        uint32_t next = to;
        bool is_new = false;
        if (i + 1 < sequence.length) {
          std::string rest;
          for (int j = i + 1; j < sequence.length; ++j) {
            rest.push_back(static_cast<char>(sequence.bytes[j].low));
            rest.push_back(static_cast<char>(sequence.bytes[j].high));
          }
          const auto [it, added] = by_rest.try_emplace(std::move(rest), 0);
          if (added) it->second = NewState();
          next = it->second;
          is_new = added;
        }
        AddByteRange(at, sequence.bytes[i].low, sequence.bytes[i].high, next);
        if (i + 1 < sequence.length && !is_new) break;  // the rest exists already
        at = next;
      }
    }
  }

  void AddAutomaton(const ExprAutomaton& automaton, uint32_t from, uint32_t to) {
    const uint32_t first = graph_.states;
    graph_.states += static_cast<uint32_t>(automaton.accepts.size());
    AddEmpty(from, first);
    for (size_t i = 0; i < automaton.accepts.size(); ++i) {
      if (automaton.accepts[i]) AddEmpty(first + static_cast<uint32_t>(i), to);
    }
    for (const ExprAutomaton::Edge& edge : automaton.edges) {
      AddPaths(*edge.label, first + static_cast<uint32_t>(edge.from),
               first + static_cast<uint32_t>(edge.to), this);
    }
  }

  const Grammar& grammar_;
  const ByteSet& allowed_;
  RuleGraph graph_;
  std::vector<int32_t> waiting_;
};

}  // namespace

absl::StatusOr<RuleGraph> DrawRules(const Grammar& grammar, const ByteSet& bytes) {
  return Drawer(grammar, bytes).Draw();
}

}  // namespace trine::constraint
