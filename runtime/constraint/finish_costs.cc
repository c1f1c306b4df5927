#include "runtime/constraint/finish_costs.h"

#include <functional>
#include <queue>
#include <span>
#include <utility>

namespace trine::constraint {
namespace {

// Lists by state, all in one vector.
template <class Item>
class ByState {
 public:
  explicit ByState(uint32_t states) : begin_(states + 1) {}
  void Add(uint32_t state, Item item) { items_.push_back({state, item}); }
  void Finish() {
    for (const auto& [state, item] : items_) ++begin_[state + 1];
    for (size_t s = 0; s + 1 < begin_.size(); ++s) begin_[s + 1] += begin_[s];
    sorted_.resize(items_.size());
    std::vector<size_t> next(begin_.begin(), begin_.end() - 1);
    for (const auto& [state, item] : items_) sorted_[next[state]++] = item;
    items_ = {};
  }
  std::span<const Item> operator[](uint32_t state) const {
    return std::span(sorted_).subspan(begin_[state], begin_[state + 1] - begin_[state]);
  }

 private:
  std::vector<size_t> begin_;
  std::vector<std::pair<uint32_t, Item>> items_;
  std::vector<Item> sorted_;
};

struct Caller {
  uint32_t from;
  uint32_t other;  // of the call's two ends, the one that isn't the key
};

// The only byte a state reads, where it reads one and calls nothing.
const Automaton::ByteEdge* OnlyByte(const Automaton& automaton, uint32_t state) {
  const auto edges = automaton.bytes(state);
  if (edges.size() != 1 || edges[0].low != edges[0].high || !automaton.calls(state).empty()) {
    return nullptr;
  }
  return &edges[0];
}

// Where tokens lead that go along written-out text.
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

std::vector<int64_t> FinishCosts(const Automaton& automaton, const TokenTrie* trie) {
  // Knuth's generalisation of Dijkstra's algorithm: a call costs what its rule and its return cost
  // together, and is known when both are.
  ByState<uint32_t> readers(automaton.size());
  ByState<Caller> by_start(automaton.size()), by_return(automaton.size());
  for (uint32_t s = 0; s < automaton.size(); ++s) {
    for (const Automaton::ByteEdge& e : automaton.bytes(s)) {
      readers.Add(e.to, s);
      if (trie != nullptr && e.low == e.high) {
        FollowText(automaton, *trie, e, [&](uint32_t to) { readers.Add(to, s); });
      }
    }
    for (const Automaton::CallEdge& e : automaton.calls(s)) {
      by_start.Add(e.start, {s, e.to});
      by_return.Add(e.to, {s, e.start});
    }
  }
  readers.Finish();
  by_start.Finish();
  by_return.Finish();

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
    for (const uint32_t from : readers[state]) offer(from, AddCosts(cost, 1));
    for (const Caller& c : by_start[state]) {
      if (known[c.other]) offer(c.from, AddCosts(cost, costs[c.other]));
    }
    for (const Caller& c : by_return[state]) {
      if (known[c.other]) offer(c.from, AddCosts(cost, costs[c.other]));
    }
  }
  return costs;
}

}  // namespace trine::constraint
