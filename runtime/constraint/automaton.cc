#include "runtime/constraint/automaton.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/constraint/finish_costs.h"
#include "runtime/constraint/rule_graph.h"

namespace trine::constraint {
namespace {

constexpr size_t kMaxEdges = 1 << 20;
constexpr size_t kMaxEmptyMoves = size_t{1} << 26;  // gone along, from all states together

// Edges by the state they leave.
template <class Edge>
class EdgesFrom {
 public:
  EdgesFrom(uint32_t states, std::vector<Edge> edges)
      : begin_(states + 1), edges_(std::move(edges)) {
    std::stable_sort(edges_.begin(), edges_.end(),
                     [](const Edge& a, const Edge& b) { return a.from < b.from; });
    for (const Edge& edge : edges_) ++begin_[edge.from + 1];
    for (uint32_t s = 0; s < states; ++s) begin_[s + 1] += begin_[s];
  }
  std::span<const Edge> operator[](uint32_t state) const {
    return std::span(edges_).subspan(begin_[state], begin_[state + 1] - begin_[state]);
  }

 private:
  std::vector<size_t> begin_;
  std::vector<Edge> edges_;
};

}  // namespace

class AutomatonBuilder {
 public:
  AutomatonBuilder(const Grammar& grammar, RuleGraph graph)
      : grammar_(grammar),
        rules_(std::move(graph.rules)),
        bytes_(graph.states, std::move(graph.bytes)),
        calls_(graph.states, std::move(graph.calls)),
        empties_(graph.states, std::move(graph.empties)),
        states_(graph.states) {}

  absl::StatusOr<Automaton> Build(DeadRules dead_rules) {
    FindNullable();
    if (absl::Status s = RemoveEmptyMoves(); !s.ok()) return s;
    if (absl::Status s = FindLevels(); !s.ok()) return s;
    if (absl::Status s = RemoveDeadStates(dead_rules); !s.ok()) return s;
    FindByteClasses();
    return std::move(out_);
  }

 private:
  // Rules whose end is reached from their beginning without a byte.
  void FindNullable() {
    nullable_.assign(rules_.size(), false);
    std::vector<bool> reached(states_, false);
    std::vector<int32_t> rule_of_accept(states_, -1);
    std::vector<std::vector<uint32_t>> waiting(rules_.size());  // on that rule's being nullable
    std::vector<uint32_t> work;
    const auto reach = [&](uint32_t state) {
      if (!reached[state]) work.push_back(state);
      reached[state] = true;
    };
    for (size_t r = 0; r < rules_.size(); ++r) {
      if (rules_[r].start == RuleGraph::kNone) continue;
      rule_of_accept[rules_[r].accept] = static_cast<int32_t>(r);
      reach(rules_[r].start);
    }
    while (!work.empty()) {
      const uint32_t state = work.back();
      work.pop_back();
      for (const RuleGraph::Empty& e : empties_[state]) reach(e.to);
      for (const RuleGraph::Call& c : calls_[state]) {
        if (nullable_[static_cast<size_t>(c.rule)]) {
          reach(c.to);
        } else {
          waiting[static_cast<size_t>(c.rule)].push_back(c.to);
        }
      }
      if (const int32_t rule = rule_of_accept[state]; rule >= 0) {
        nullable_[static_cast<size_t>(rule)] = true;
        for (const uint32_t to : waiting[static_cast<size_t>(rule)]) reach(to);
        waiting[static_cast<size_t>(rule)].clear();
      }
    }
  }

  uint32_t Number(uint32_t state) {
    if (number_[state] == 0) {
      order_.push_back(state);
      number_[state] = static_cast<uint32_t>(order_.size());  // 0 is kBottom
    }
    return number_[state];
  }

  // Only starts of rules, and states that an edge leads to, are kept.
  absl::Status RemoveEmptyMoves() {
    number_.assign(states_, 0);
    std::vector<bool> is_accept(states_, false);
    for (const RuleGraph::Ends& ends : rules_) {
      if (ends.accept != RuleGraph::kNone) is_accept[ends.accept] = true;
    }
    out_.accepts_ = {false};
    out_.byte_begin_ = {0, 0};
    out_.call_begin_ = {0, 0};
    out_.root_ = Number(rules_[static_cast<size_t>(grammar_.root)].start);
    std::vector<uint32_t> seen(states_, 0), closure;
    size_t moves = 0;
    for (size_t i = 0; i < order_.size(); ++i) {
      closure = {order_[i]};
      seen[order_[i]] = static_cast<uint32_t>(i) + 1;
      const auto visit = [&](uint32_t state) {
        if (seen[state] == i + 1) return;
        seen[state] = static_cast<uint32_t>(i) + 1;
        closure.push_back(state);
      };
      bool accepts = false;
      const size_t first_byte = out_.bytes_.size(), first_call = out_.calls_.size();
      for (size_t k = 0; k < closure.size(); ++k) {
        const uint32_t state = closure[k];
        accepts = accepts || is_accept[state];
        for (const RuleGraph::Empty& e : empties_[state]) visit(e.to);
        for (const RuleGraph::Byte& b : bytes_[state]) {
          out_.bytes_.push_back({b.low, b.high, Number(b.to)});
        }
        for (const RuleGraph::Call& c : calls_[state]) {
          const auto rule = static_cast<size_t>(c.rule);
          if (nullable_[rule]) visit(c.to);
          out_.calls_.push_back({Number(rules_[rule].start), Number(c.to)});
        }
      }
      SortUnique(first_byte, &out_.bytes_);
      SortUnique(first_call, &out_.calls_);
      moves += closure.size();
      if (out_.bytes_.size() + out_.calls_.size() > kMaxEdges || moves > kMaxEmptyMoves) {
        return absl::InvalidArgumentError(
            absl::StrCat("grammar: its automaton has more than ", kMaxEdges,
                         " edges: ask for smaller counts or lengths"));
      }
      out_.accepts_.push_back(accepts);
      out_.byte_begin_.push_back(static_cast<uint32_t>(out_.bytes_.size()));
      out_.call_begin_.push_back(static_cast<uint32_t>(out_.calls_.size()));
    }
    return absl::OkStatus();
  }

  template <class Edge>
  static void SortUnique(size_t first, std::vector<Edge>* edges) {
    const auto begin = edges->begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(begin, edges->end());
    edges->erase(std::unique(begin, edges->end()), edges->end());
  }

  std::string RuleName(uint32_t start) const {
    for (size_t r = 0; r < rules_.size(); ++r) {
      if (rules_[r].start != RuleGraph::kNone && number_[rules_[r].start] == start) {
        return absl::StrCat("'", grammar_.rules[r].name, "'");
      }
    }
    return "a rule";
  }

  // A rule that begins with itself would be entered for ever before a byte is read. Without such
  // ones every state has a level.
  absl::Status FindLevels() {
    enum : uint8_t { kNew, kOpen, kDone };
    std::vector<uint8_t> mark(out_.size(), kNew);
    out_.levels_.assign(out_.size(), 0);
    struct Visit {
      uint32_t state;
      size_t next;
    };
    std::vector<Visit> path;
    for (uint32_t first = 0; first < out_.size(); ++first) {
      if (mark[first] != kNew) continue;
      path.push_back({first, 0});
      mark[first] = kOpen;
      while (!path.empty()) {
        Visit& top = path.back();
        const auto calls = out_.calls(top.state);
        if (top.next == calls.size()) {
          for (const Automaton::CallEdge& call : calls) {
            out_.levels_[top.state] =
                std::max(out_.levels_[top.state], out_.levels_[call.start] + 1);
          }
          mark[top.state] = kDone;
          path.pop_back();
          continue;
        }
        const uint32_t called = calls[top.next++].start;
        if (mark[called] == kOpen) {
          return absl::InvalidArgumentError(
              absl::StrCat("grammar: the rule ", RuleName(called),
                           " begins with itself (left recursion): write it with * or +"));
        }
        if (mark[called] == kNew) {
          mark[called] = kOpen;
          path.push_back({called, 0});
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status RemoveDeadStates(DeadRules dead_rules) {
    const std::vector<int64_t> costs = FinishCosts(out_, nullptr);
    if (dead_rules == DeadRules::kRefuse) {
      for (size_t r = 0; r < rules_.size(); ++r) {
        if (rules_[r].start == RuleGraph::kNone) continue;
        if (costs[number_[rules_[r].start]] == kNeverFinishes) return DeadRule(r);
      }
    }
    if (costs[out_.root_] == kNeverFinishes) return DeadRule(static_cast<size_t>(grammar_.root));
    Automaton alive;
    alive.root_ = out_.root_;
    alive.accepts_ = out_.accepts_;
    alive.levels_ = out_.levels_;
    alive.byte_begin_ = alive.call_begin_ = {0};
    for (uint32_t s = 0; s < out_.size(); ++s) {
      for (const Automaton::ByteEdge& e : out_.bytes(s)) {
        if (costs[e.to] != kNeverFinishes) alive.bytes_.push_back(e);
      }
      for (const Automaton::CallEdge& e : out_.calls(s)) {
        if (costs[e.to] != kNeverFinishes && costs[e.start] != kNeverFinishes) {
          alive.calls_.push_back(e);
        }
      }
      alive.byte_begin_.push_back(static_cast<uint32_t>(alive.bytes_.size()));
      alive.call_begin_.push_back(static_cast<uint32_t>(alive.calls_.size()));
    }
    out_ = std::move(alive);
    return absl::OkStatus();
  }

  absl::Status DeadRule(size_t rule) const {
    return absl::InvalidArgumentError(absl::StrCat("grammar: the rule '", grammar_.rules[rule].name,
                                                   "' can produce no finite text"));
  }

  void FindByteClasses() {
    std::bitset<257> begins;
    begins.set(0);
    for (const Automaton::ByteEdge& e : out_.bytes_) {
      begins.set(e.low);
      begins.set(e.high + size_t{1});
    }
    uint32_t current = 0;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      if (begins[byte] && byte > 0) ++current;
      if (begins[byte]) out_.first_of_class_[current] = static_cast<uint8_t>(byte);
      out_.byte_class_[byte] = static_cast<uint8_t>(current);
    }
    out_.n_classes_ = current + 1;
  }

  const Grammar& grammar_;
  std::vector<RuleGraph::Ends> rules_;
  EdgesFrom<RuleGraph::Byte> bytes_;
  EdgesFrom<RuleGraph::Call> calls_;
  EdgesFrom<RuleGraph::Empty> empties_;
  uint32_t states_;
  std::vector<bool> nullable_;
  std::vector<uint32_t> number_;  // of a state of the graph in the automaton; 0: it has none
  std::vector<uint32_t> order_;
  Automaton out_;
};

absl::StatusOr<Automaton> BuildAutomaton(const Grammar& grammar, const ByteSet& bytes,
                                         DeadRules dead_rules) {
  auto graph = DrawRules(grammar, bytes);
  if (!graph.ok()) return graph.status();
  return AutomatonBuilder(grammar, *std::move(graph)).Build(dead_rules);
}

}  // namespace trine::constraint
