#include "runtime/constraint/grammar/automaton.h"

#include <functional>
#include <queue>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/constraint/grammar/rule_graph.h"

namespace trine::constraint {
namespace {

constexpr size_t kMaxAutomatonEdges = 1 << 20;
constexpr size_t kMaxEmptyMoves = size_t{1} << 26;  // states visited, summed over all closures

// An edge backwards: from a state to one whose cost depends on it.
struct Reader {
  uint32_t from;
  uint32_t to;
};
struct Caller {
  uint32_t from;
  uint32_t to;
  uint32_t other;  // the other end of the call
};

// Returns the only edge of a state that reads one byte and calls nothing, or nullptr.
const Automaton::ByteEdge* OnlyByte(const Automaton& automaton, uint32_t state) {
  const auto edges = automaton.bytes(state);
  if (edges.size() != 1 || edges[0].low != edges[0].high || !automaton.calls(state).empty()) {
    return nullptr;
  }
  return &edges[0];
}

// Calls found(state) for each state that a token reaches along written-out text.
template <class Found>
void FollowText(const Automaton& automaton, const TokenTrie& trie, const Automaton::ByteEdge& first,
                Found found) {
  uint32_t node = TokenTrie::kRoot;
  for (const Automaton::ByteEdge* edge = &first; edge != nullptr;
       edge = OnlyByte(automaton, edge->to)) {
    node = trie.Child(node, edge->low);
    if (node == TokenTrie::kRoot) return;
    if (!trie.tokens(node).empty()) found(edge->to);
  }
}

}  // namespace

class AutomatonBuilder {
 public:
  AutomatonBuilder(const Grammar& grammar, RuleGraph graph)
      : grammar_(grammar),
        rules_(std::move(graph.rules)),
        bytes_(graph.states, graph.bytes),
        calls_(graph.states, graph.calls),
        empties_(graph.states, graph.empties),
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
  // Finds the rules that match the empty text.
  void FindNullable() {
    nullable_.assign(rules_.size(), false);
    std::vector<bool> reached(states_, false);
    std::vector<int32_t> rule_of_accept(states_, -1);
    // Per rule: states that are reached if the rule is nullable.
    std::vector<std::vector<uint32_t>> waiting(rules_.size());
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

  // Keeps only the starts of rules and the states that an edge leads to.
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
      if (out_.bytes_.size() + out_.calls_.size() > kMaxAutomatonEdges || moves > kMaxEmptyMoves) {
        return Invalid("grammar: its automaton has more than ", kMaxAutomatonEdges,
                       " edges: ask for smaller counts or lengths");
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

  // Gives every state a level. Fails if a rule begins with itself: it would be entered for ever
  // before a byte is read.
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
          return Invalid("grammar: the rule ", RuleName(called),
                         " begins with itself (left recursion): write it with * or +");
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
    return Invalid("grammar: the rule '", grammar_.rules[rule].name,
                   "' can produce no finite text");
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
  std::vector<uint32_t> number_;  // automaton state of each graph state; 0: none
  std::vector<uint32_t> order_;
  Automaton out_;
};

absl::StatusOr<Automaton> BuildAutomaton(const Grammar& grammar, const ByteSet& bytes,
                                         DeadRules dead_rules) {
  auto graph = DrawRules(grammar, bytes);
  if (!graph.ok()) return graph.status();
  return AutomatonBuilder(grammar, *std::move(graph)).Build(dead_rules);
}

std::vector<int64_t> FinishCosts(const Automaton& automaton, const TokenTrie* trie) {
  // Knuth's generalisation of Dijkstra's algorithm: a call costs what its rule and its return cost
  // together, and its cost is known when both are.
  std::vector<Reader> reader_list;
  std::vector<Caller> start_list, return_list;
  for (uint32_t s = 0; s < automaton.size(); ++s) {
    for (const Automaton::ByteEdge& e : automaton.bytes(s)) {
      reader_list.push_back({e.to, s});
      if (trie != nullptr && e.low == e.high) {
        FollowText(automaton, *trie, e, [&](uint32_t to) { reader_list.push_back({to, s}); });
      }
    }
    for (const Automaton::CallEdge& e : automaton.calls(s)) {
      start_list.push_back({e.start, s, e.to});
      return_list.push_back({e.to, s, e.start});
    }
  }
  const EdgesFrom<Reader> readers(automaton.size(), reader_list);
  const EdgesFrom<Caller> by_start(automaton.size(), start_list);
  const EdgesFrom<Caller> by_return(automaton.size(), return_list);

  std::vector<int64_t> costs(automaton.size(), kNeverFinishes);
  std::vector<bool> known(automaton.size(), false);
  using Entry = std::pair<int64_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  const auto offer = [&](uint32_t state, int64_t cost) {
    if (cost >= costs[state]) return;
    costs[state] = cost;
    queue.push({cost, state});
  };
  for (uint32_t s = 0; s < automaton.size(); ++s) {
    if (automaton.accepts(s)) offer(s, 0);
  }
  while (!queue.empty()) {
    const auto [cost, state] = queue.top();
    queue.pop();
    if (known[state]) continue;
    known[state] = true;
    for (const Reader& r : readers[state]) offer(r.to, AddCosts(cost, 1));
    for (const auto& callers : {by_start[state], by_return[state]}) {
      for (const Caller& c : callers) {
        if (known[c.other]) offer(c.to, AddCosts(cost, costs[c.other]));
      }
    }
  }
  return costs;
}

}  // namespace trine::constraint
