#include "runtime/constraint/token_effects.h"

#include <map>

namespace trine::constraint {

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
  // In a table of its own, where the rule's end is the end of everything.
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

}  // namespace trine::constraint
