#include "runtime/constraint/grammar/char_dfa.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "absl/status/status.h"
#include "runtime/base/invalid.h"
#include "runtime/tokenizer/utf8.h"

namespace trine::constraint {
namespace {

constexpr size_t kMaxNfaStates = 40000;
constexpr size_t kMaxNfaEdges = 1 << 19;

// A regular expression as an automaton over characters with empty moves: a step on the way to a
// CharDfa.
class CharNfa {
 public:
  struct Edge {
    CodePointRange range;
    int32_t to;
  };

  // Takes no rules and machines. Fails with INVALID_ARGUMENT if the automaton has too many states.
  static absl::StatusOr<CharNfa> Of(const Expr& expr) {
    CharNfa nfa;
    nfa.states_.resize(2);
    AddPaths(expr, nfa.start(), nfa.accept(), &nfa);
    if (nfa.TooLarge()) {
      return Invalid("with its repetitions written out it has more than ", kMaxNfaStates,
                     " states, or ", kMaxNfaEdges, " ranges of characters");
    }
    return nfa;
  }

  size_t size() const { return states_.size(); }
  int32_t start() const { return 0; }
  int32_t accept() const { return 1; }
  const std::vector<Edge>& edges(int32_t state) const {
    return states_[static_cast<size_t>(state)].edges;
  }

  // Returns `states` and all states that empty moves lead to from them, ascending.
  std::vector<int32_t> Close(std::vector<int32_t> states) const {
    std::vector<bool> seen(states_.size(), false);
    std::vector<int32_t> closed;
    while (!states.empty()) {
      const int32_t s = states.back();
      states.pop_back();
      if (seen[static_cast<size_t>(s)]) continue;
      seen[static_cast<size_t>(s)] = true;
      closed.push_back(s);
      const auto& empty = states_[static_cast<size_t>(s)].empty;
      states.insert(states.end(), empty.begin(), empty.end());
    }
    std::sort(closed.begin(), closed.end());
    return closed;
  }

  // The methods that AddPaths needs.
  bool TooLarge() const { return states_.size() > kMaxNfaStates || ranges_ > kMaxNfaEdges; }
  int32_t NewState() {
    states_.emplace_back();
    return static_cast<int32_t>(states_.size()) - 1;
  }
  void AddEmpty(int32_t from, int32_t to) {
    states_[static_cast<size_t>(from)].empty.push_back(to);
  }
  void AddLeaf(const Expr& expr, int32_t from, int32_t to) {
    if (expr.kind == Expr::Kind::kCharacter) {
      for (const CodePointRange& range : expr.set.ranges()) AddEdge(range, from, to);
      ranges_ += expr.set.ranges().size();
    } else if (expr.kind == Expr::Kind::kText) {
      for (std::string_view text = expr.text; !text.empty();) {
        const Utf8Step step = NextUtf8(text);
        text.remove_prefix(step.bytes);
        const int32_t next = text.empty() ? to : NewState();
        AddEdge({step.code_point, step.code_point}, from, next);
        from = next;
      }
      if (expr.text.empty()) AddEmpty(from, to);
    }
  }

 private:
  struct State {
    std::vector<Edge> edges;
    std::vector<int32_t> empty;
  };

  void AddEdge(const CodePointRange& range, int32_t from, int32_t to) {
    states_[static_cast<size_t>(from)].edges.push_back({range, to});
  }

  std::vector<State> states_;
  size_t ranges_ = 0;  // in sets of characters
};

constexpr size_t kMaxDfaStates = 10000;
constexpr size_t kMaxDfaEdges = 1 << 20;
constexpr size_t kMaxMembers = 1 << 22;          // NFA states in all sets that DFA states stand for
constexpr size_t kMaxDfaWork = size_t{1} << 28;  // edges and states visited
constexpr size_t kMaxMinimizing = size_t{1}
                                  << 18;  // states visited; beyond it the automaton stays larger

absl::Status TooLarge() {
  return Invalid("it takes an automaton of more than ", kMaxDfaStates, " states, or too many sets");
}

int32_t Next(const CharDfa::State& state, uint32_t c) {
  const auto it =
      std::lower_bound(state.edges.begin(), state.edges.end(), c,
                       [](const CharDfa::Edge& e, uint32_t value) { return e.range.high < value; });
  return it != state.edges.end() && it->range.low <= c ? it->to : -1;
}

// Adds an edge. Extends the last edge instead if it is adjacent and leads to the same state.
void AddEdge(uint32_t low, uint32_t high, int32_t to, std::vector<CharDfa::Edge>* edges) {
  if (!edges->empty() && edges->back().to == to && edges->back().range.high + 1 == low) {
    edges->back().range.high = high;
  } else {
    edges->push_back({{low, high}, to});
  }
}

}  // namespace

absl::StatusOr<CharDfa> CharDfa::Of(const Expr& expr) {
  const auto nfa = CharNfa::Of(expr);
  if (!nfa.ok()) return nfa.status();
  CharDfa dfa;
  std::map<std::vector<int32_t>, int32_t> numbers;
  std::vector<const std::vector<int32_t>*> sets;  // the keys of the map
  size_t members = 0;
  const auto number = [&](std::vector<int32_t> set) {
    const auto [it, added] = numbers.try_emplace(std::move(set), static_cast<int32_t>(sets.size()));
    if (added) {
      sets.push_back(&it->first);
      members += it->first.size();
    }
    return it->second;
  };
  number(nfa->Close({nfa->start()}));
  size_t work = 0, total_edges = 0;
  for (size_t i = 0; i < sets.size(); ++i) {
    if (sets.size() > kMaxDfaStates || members > kMaxMembers || total_edges > kMaxDfaEdges ||
        work > kMaxDfaWork) {
      return TooLarge();
    }
    State state;
    // The characters at which the set of matching edges changes.
    std::set<uint32_t> cuts;
    std::vector<CharNfa::Edge> edges;
    for (const int32_t s : *sets[i]) {
      state.accepts = state.accepts || s == nfa->accept();
      for (const CharNfa::Edge& e : nfa->edges(s)) {
        edges.push_back(e);
        cuts.insert(e.range.low);
        cuts.insert(e.range.high + 1);
      }
    }
    work += (edges.size() + nfa->size()) * cuts.size();
    for (auto cut = cuts.begin(); cut != cuts.end(); ++cut) {
      std::vector<int32_t> targets;
      for (const CharNfa::Edge& e : edges) {
        if (e.range.low <= *cut && *cut <= e.range.high) targets.push_back(e.to);
      }
      if (targets.empty()) continue;
      AddEdge(*cut, *std::next(cut) - 1, number(nfa->Close(std::move(targets))), &state.edges);
    }
    total_edges += state.edges.size();
    dfa.states_.push_back(std::move(state));
  }
  dfa.Minimize();
  return dfa;
}

CharDfa CharDfa::Any() { return Lengths(0, Expr::kNoLimit); }

CharDfa CharDfa::Lengths(int64_t min, int64_t max) {
  CharDfa dfa;
  if (max != Expr::kNoLimit && max < min) return dfa;
  const int64_t last = max == Expr::kNoLimit ? min : max;
  const std::vector<CodePointRange> all = CodePointSet::All().ranges();
  for (int64_t i = 0; i <= last; ++i) {
    State state;
    state.accepts = i >= min;
    const bool ends = i == last && max != Expr::kNoLimit;
    for (const CodePointRange& r : all) {
      if (!ends) state.edges.push_back({r, static_cast<int32_t>(std::min(i + 1, last))});
    }
    dfa.states_.push_back(std::move(state));
  }
  return dfa;
}

// Runs both automata side by side. The state of `other` is -1 once it has refused the text.
template <class Accept>
absl::StatusOr<CharDfa> CharDfa::Product(const CharDfa& other, bool other_may_die,
                                         Accept accept) const {
  CharDfa out;
  if (states_.empty()) return out;
  std::map<std::pair<int32_t, int32_t>, int32_t> numbers;
  std::vector<std::pair<int32_t, int32_t>> pairs;
  const auto number = [&](int32_t a, int32_t b) {
    const auto [it, added] = numbers.try_emplace({a, b}, static_cast<int32_t>(pairs.size()));
    if (added) pairs.push_back({a, b});
    return it->second;
  };
  const State none;
  number(0, other.states_.empty() ? -1 : 0);
  size_t work = 0, total_edges = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs.size() > kMaxDfaStates || total_edges > kMaxDfaEdges || work > kMaxDfaWork)
      return TooLarge();
    const auto [a, b] = pairs[i];
    const State& left = states_[static_cast<size_t>(a)];
    const State& right = b < 0 ? none : other.states_[static_cast<size_t>(b)];
    State state;
    state.accepts = accept(left.accepts, right.accepts);
    for (const Edge& edge : left.edges) {
      std::set<uint32_t> cuts = {edge.range.low};
      for (const Edge& e : right.edges) {
        if (e.range.low > edge.range.low && e.range.low <= edge.range.high) {
          cuts.insert(e.range.low);
        }
        if (e.range.high >= edge.range.low && e.range.high < edge.range.high) {
          cuts.insert(e.range.high + 1);
        }
      }
      for (auto cut = cuts.begin(); cut != cuts.end(); ++cut) {
        const uint32_t high = std::next(cut) == cuts.end() ? edge.range.high : *std::next(cut) - 1;
        const int32_t to = Next(right, *cut);
        if (to < 0 && !other_may_die) continue;
        AddEdge(*cut, high, number(edge.to, to), &state.edges);
      }
    }
    work += (left.edges.size() + 1) * (right.edges.size() + 1);
    total_edges += state.edges.size();
    out.states_.push_back(std::move(state));
  }
  out.Minimize();
  return out;
}

absl::StatusOr<CharDfa> CharDfa::Intersect(const CharDfa& other) const {
  return Product(other, false, [](bool a, bool b) { return a && b; });
}

absl::StatusOr<CharDfa> CharDfa::Minus(const CharDfa& other) const {
  return Product(other, true, [](bool a, bool b) { return a && !b; });
}

void CharDfa::RemoveDead() {
  std::vector<std::vector<size_t>> before(states_.size());
  std::vector<bool> alive(states_.size(), false);
  std::vector<size_t> work;
  for (size_t s = 0; s < states_.size(); ++s) {
    for (const Edge& e : states_[s].edges) before[static_cast<size_t>(e.to)].push_back(s);
    if (states_[s].accepts) {
      alive[s] = true;
      work.push_back(s);
    }
  }
  while (!work.empty()) {
    const size_t s = work.back();
    work.pop_back();
    for (const size_t b : before[s]) {
      if (!alive[b]) work.push_back(b);
      alive[b] = true;
    }
  }
  if (states_.empty() || !alive[0]) {
    states_.clear();
    return;
  }
  for (State& state : states_) {
    std::erase_if(state.edges, [&](const Edge& e) { return !alive[static_cast<size_t>(e.to)]; });
  }
}

void CharDfa::Minimize() {
  RemoveDead();
  if (states_.empty()) return;
  // Moore's refinement: splits each class of states by the classes that their edges lead to.
  std::vector<int32_t> classes(states_.size());
  for (size_t s = 0; s < states_.size(); ++s) classes[s] = states_[s].accepts ? 1 : 0;
  size_t count = 0, work = 0;
  for (;;) {
    work += states_.size();
    if (work > kMaxMinimizing) return;
    std::map<std::pair<int32_t, std::vector<std::array<uint32_t, 3>>>, int32_t> known;
    std::vector<int32_t> next(states_.size());
    for (size_t s = 0; s < states_.size(); ++s) {
      std::vector<Edge> merged;
      for (const Edge& e : states_[s].edges) {
        AddEdge(e.range.low, e.range.high, classes[static_cast<size_t>(e.to)], &merged);
      }
      std::vector<std::array<uint32_t, 3>> signature;
      for (const Edge& e : merged) {
        signature.push_back({e.range.low, e.range.high, static_cast<uint32_t>(e.to)});
      }
      next[s] =
          known.try_emplace({classes[s], std::move(signature)}, static_cast<int32_t>(known.size()))
              .first->second;
    }
    classes.swap(next);  // the first state's class is 0, so it stays the start
    if (known.size() == count) break;
    count = known.size();
  }
  std::vector<State> least(count);
  std::vector<bool> filled(count, false);
  for (size_t s = 0; s < states_.size(); ++s) {
    const auto c = static_cast<size_t>(classes[s]);
    if (filled[c]) continue;
    filled[c] = true;
    least[c].accepts = states_[s].accepts;
    for (const Edge& e : states_[s].edges) {
      AddEdge(e.range.low, e.range.high, classes[static_cast<size_t>(e.to)], &least[c].edges);
    }
  }
  states_ = std::move(least);
}

bool CharDfa::Accepts(std::string_view text) const {
  int32_t state = states_.empty() ? -1 : 0;
  while (!text.empty() && state >= 0) {
    const Utf8Step step = NextUtf8(text);
    if (step.kind != Utf8Step::Kind::kCharacter) return false;
    state = Next(states_[static_cast<size_t>(state)], step.code_point);
    text.remove_prefix(step.bytes);
  }
  return state >= 0 && states_[static_cast<size_t>(state)].accepts;
}

ExprPtr CharDfa::ToExpr(const std::function<ExprPtr(const CodePointSet&)>& write) const {
  if (states_.empty()) return Choice({});
  ExprAutomaton machine;
  for (size_t s = 0; s < states_.size(); ++s) {
    machine.accepts.push_back(states_[s].accepts);
    std::map<int32_t, CodePointSet> by_target;
    for (const Edge& e : states_[s].edges) by_target[e.to].Add(e.range.low, e.range.high);
    for (const auto& [to, set] : by_target) {
      machine.edges.push_back({static_cast<int32_t>(s), to, write(set)});
    }
  }
  return Machine(std::move(machine));
}

}  // namespace trine::constraint
