#include "runtime/constraint/mask/token_effects.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace trine::constraint {
namespace {

// The most numbers to compare. Beyond it every state is its own class, which is always right.
constexpr uint64_t kMaxClassWork = uint64_t{1} << 26;

// A state's edges, with the classes of the states that they lead to.
using Signature = std::vector<int64_t>;

// Partition refinement. Each round looks one byte further, and only at states that lead to one
// whose class changed in the round before.
class Refinement {
 public:
  Refinement(const Automaton& automaton, const std::vector<int64_t>& costs)
      : automaton_(automaton),
        costs_(costs),
        classes_(automaton.size(), 0),
        members_{automaton.size()},
        signatures_(1),
        before_(automaton.size()) {
    for (uint32_t s = 0; s < automaton.size(); ++s) {
      for (const Automaton::ByteEdge& e : automaton.bytes(s)) before_[e.to].push_back(s);
      for (const Automaton::CallEdge& e : automaton.calls(s)) before_[e.to].push_back(s);
      doubtful_.push_back(s);
    }
  }

  // Returns false if it takes too long.
  bool Run(int32_t rounds) {
    for (int32_t round = 0; round < rounds && !doubtful_.empty(); ++round) {
      if (!Refine()) return false;
    }
    return true;
  }

  std::vector<uint32_t> Names() const {
    std::vector<uint32_t> least(members_.size(), UINT32_MAX), names(classes_.size());
    for (uint32_t s = 0; s < names.size(); ++s) {
      uint32_t& name = least[classes_[s]];
      name = std::min(name, s);
      names[s] = name;
    }
    return names;
  }

 private:
  Signature Describe(uint32_t state) const {
    Signature out = {automaton_.accepts(state) ? 1 : 0};
    for (const Automaton::ByteEdge& e : automaton_.bytes(state)) {
      out.insert(out.end(),
                 {int64_t{e.low} << 8 | e.high, classes_[e.to], costs_[e.to] - costs_[state]});
    }
    out.push_back(-1);
    for (const Automaton::CallEdge& e : automaton_.calls(state)) {
      // A state that only accepts is not pushed on the stack.
      out.insert(out.end(), {e.start, classes_[e.to], automaton_.only_accepts(e.to) ? 1 : 0,
                             AddCosts(costs_[e.to], costs_[e.start]) - costs_[state]});
    }
    return out;
  }

  bool Refine() {
    std::vector<std::pair<uint32_t, Signature>> described;
    absl::flat_hash_map<uint32_t, uint32_t> doubtful_members;
    for (const uint32_t s : doubtful_) {
      described.emplace_back(s, Describe(s));
      work_ += described.back().second.size();
      ++doubtful_members[classes_[s]];
    }
    if (work_ > kMaxClassWork) return false;
    // The members that are not in doubt keep the class's number. If all are in doubt, the members
    // with the first one's signature keep it.
    for (const auto& [s, signature] : described) {
      uint32_t& count = doubtful_members[classes_[s]];
      if (count == members_[classes_[s]]) signatures_[classes_[s]] = signature;
      count = 0;
    }
    absl::flat_hash_map<std::pair<uint32_t, Signature>, uint32_t> parted;
    std::vector<std::pair<uint32_t, uint32_t>> moves;
    for (auto& [s, signature] : described) {
      const uint32_t old = classes_[s];
      if (signature == signatures_[old]) continue;
      const auto [it, added] =
          parted.try_emplace({old, std::move(signature)}, static_cast<uint32_t>(members_.size()));
      if (added) {
        members_.push_back(0);
        signatures_.push_back(it->first.second);
      }
      moves.emplace_back(s, it->second);
    }
    doubtful_.clear();
    for (const auto& [s, to] : moves) {
      --members_[classes_[s]];
      ++members_[to];
      classes_[s] = to;
      doubtful_.insert(doubtful_.end(), before_[s].begin(), before_[s].end());
    }
    std::sort(doubtful_.begin(), doubtful_.end());
    doubtful_.erase(std::unique(doubtful_.begin(), doubtful_.end()), doubtful_.end());
    return true;
  }

  const Automaton& automaton_;
  const std::vector<int64_t>& costs_;
  std::vector<uint32_t> classes_;
  std::vector<uint32_t> members_;      // number of members of each class
  std::vector<Signature> signatures_;  // signature of each class's members
  std::vector<std::vector<uint32_t>> before_;
  std::vector<uint32_t> doubtful_;
  uint64_t work_ = 0;
};

}  // namespace

size_t TokenEffects::bytes() const {
  size_t sum = sizeof(*this) + exits.size() * sizeof(exits[0]);
  for (const Group& group : groups) {
    sum += sizeof(group) + group.mask.size() * sizeof(group.mask[0]) +
           group.tokens.size() * sizeof(group.tokens[0]);
  }
  return sum;
}

TokenEffects FindTokenEffects(const Automaton& automaton, const std::vector<int64_t>& costs,
                              const TokenTrie& trie, uint32_t state, size_t mask_words) {
  TokenEffects effects;
  // In a table of its own the end of the rule is the end of the text.
  StackTable table(&automaton, &costs);
  const StackSet start = table.Single(state, StackTable::kDone);
  std::map<int64_t, std::vector<int32_t>> by_change;
  TrieWalker walker(trie);
  walker.Walk(TokenTrie::kRoot, &table, start, table.size(), [&](uint32_t node, StackSet set) {
    if (const auto tokens = trie.tokens(node); !tokens.empty()) {
      std::vector<int32_t>& list = by_change[table.cost(set) - costs[state]];
      list.insert(list.end(), tokens.begin(), tokens.end());
    }
    if (table.done(set) && trie.node(node).end > node + 1) effects.exits.push_back(node);
    return set != StackTable::kDone;
  });
  for (auto& [change, tokens] : by_change) {
    TokenEffects::Group group;
    group.change = change;
    if (tokens.size() > mask_words) {
      group.mask.resize(mask_words);
      for (const int32_t token : tokens) AddToMask(token, group.mask);
    } else {
      group.tokens = std::move(tokens);
      group.tokens.shrink_to_fit();
    }
    effects.groups.push_back(std::move(group));
  }
  return effects;
}

void AddToMask(const TokenEffects::Group& group, std::span<uint32_t> mask) {
  for (size_t i = 0; i < group.mask.size(); ++i) mask[i] |= group.mask[i];
  for (const int32_t token : group.tokens) AddToMask(token, mask);
}

std::vector<uint32_t> StateClasses(const Automaton& automaton, const std::vector<int64_t>& costs,
                                   int32_t max_bytes) {
  Refinement refinement(automaton, costs);
  // The extra round tells whether the rule may end after the last byte.
  if (refinement.Run(max_bytes + 1)) return refinement.Names();
  std::vector<uint32_t> each(automaton.size());
  for (uint32_t s = 0; s < each.size(); ++s) each[s] = s;
  return each;
}

}  // namespace trine::constraint
