// Computes how the tokens of a vocabulary change one state of the automaton, as far as that does
// not depend on the stack below the state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/constraint/grammar/automaton.h"
#include "runtime/constraint/grammar/token_trie.h"
#include "runtime/constraint/mask/stack_table.h"

namespace trine::constraint {

struct TokenEffects {
  // Tokens that may follow with any stack below, and that change the cost of finishing equally.
  struct Group {
    int64_t change;
    std::vector<uint32_t> mask;   // one bit per token; empty if `tokens` is used
    std::vector<int32_t> tokens;  // used if a list is shorter than a mask
  };
  std::vector<Group> groups;  // ascending by change
  // Trie nodes at which the state's rule may have ended. Whether a token below such a node may
  // follow depends on the stack.
  std::vector<uint32_t> exits;

  size_t bytes() const;  // memory used
};

TokenEffects FindTokenEffects(const Automaton& automaton, const std::vector<int64_t>& costs,
                              const TokenTrie& trie, uint32_t state, size_t mask_words);

void AddToMask(const TokenEffects::Group& group, std::span<uint32_t> mask);
inline void AddToMask(int32_t token, std::span<uint32_t> mask) {
  mask[static_cast<uint32_t>(token) / 32] |= 1u << (static_cast<uint32_t>(token) % 32);
}

// Walks over the trie in step with the automaton. Keeps its memory between walks.
class TrieWalker {
 public:
  explicit TrieWalker(const TokenTrie& trie)
      : trie_(trie), path_(static_cast<size_t>(trie.max_depth()) + 1) {}

  // Calls visit(node, set) for each node below `from` whose bytes lead from `start` to a set of
  // stacks. If `visit` returns false, skips the nodes below this one. Trims the table to its first
  // `keep` sets when it has grown much; `start` must be one of these.
  template <class Visit>
  void Walk(uint32_t from, StackTable* table, StackSet start, size_t keep, Visit visit) {
    const uint32_t top = trie_.node(from).depth;
    const uint32_t end = trie_.node(from).end;
    path_[0] = start;
    for (uint32_t i = from + 1; i < end;) {
      const TokenTrie::Node& node = trie_.node(i);
      const uint32_t depth = node.depth - top;
      if (depth == 1 && (table->size() > keep + kMaxNewSets || table->full())) table->Trim(keep);
      const StackSet set = table->Step(path_[depth - 1], node.byte);
      if (set == StackTable::kNoStacks || !visit(i, set)) {
        i = node.end;
        continue;
      }
      path_[depth] = set;
      ++i;
    }
  }

 private:
  static constexpr size_t kMaxNewSets = 1 << 14;

  const TokenTrie& trie_;
  std::vector<StackSet> path_;
};

// Puts states that no token can tell apart into classes, so that a token's effect is computed once
// for a class. In a rule of at most 1000 characters, for example, the states after the 3rd and
// after the 300th character are in one class.
//
// Returns the class of each state, named by the least state in it. The states of a class allow the
// same texts of up to `max_bytes` bytes before their rule is left, may leave the rule at the same
// places in a text, and each text changes their costs by the same amount.
std::vector<uint32_t> StateClasses(const Automaton& automaton, const std::vector<int64_t>& costs,
                                   int32_t max_bytes);

}  // namespace trine::constraint
