// What the tokens of a vocabulary do to one state of the automaton, as far as that does not depend
// on what lies below it on the stack.
#ifndef TRINE_RUNTIME_CONSTRAINT_TOKEN_EFFECTS_H_
#define TRINE_RUNTIME_CONSTRAINT_TOKEN_EFFECTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/constraint/automaton.h"
#include "runtime/constraint/stack_table.h"
#include "runtime/constraint/token_trie.h"

namespace trine::constraint {

struct TokenEffects {
  // Tokens that may follow whatever lies below: by how much they change the cost of finishing.
  struct Group {
    int64_t change;
    std::vector<uint32_t> mask;   // one bit per token; empty where a list is shorter
    std::vector<int32_t> tokens;  // the list
  };
  std::vector<Group> groups;  // ascending by change
  // Nodes of the trie at which the state's rule may have been left. Whether the tokens below them
  // may follow depends on the stack.
  std::vector<uint32_t> exits;

  size_t bytes() const;  // of memory
};

TokenEffects FindTokenEffects(const Automaton& automaton, const std::vector<int64_t>& costs,
                              const TokenTrie& trie, uint32_t state, size_t mask_words);

void AddToMask(const TokenEffects::Group& group, std::span<uint32_t> mask);
inline void AddToMask(int32_t token, std::span<uint32_t> mask) {
  mask[static_cast<uint32_t>(token) / 32] |= 1u << (static_cast<uint32_t>(token) % 32);
}

// A walk over the trie in step with the automaton. Keeps its memory from one to the next.
class TrieWalker {
 public:
  explicit TrieWalker(const TokenTrie& trie)
      : trie_(trie), path_(static_cast<size_t>(trie.max_depth()) + 1) {}

  // Calls visit(node, set) for the nodes below `from` whose bytes lead from `start` to some set;
  // where it says false, those below are left out. When the table has learned much, it forgets all
  // but its first `keep` sets, of which `start` is one.
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

}  // namespace trine::constraint

#endif  // TRINE_RUNTIME_CONSTRAINT_TOKEN_EFFECTS_H_
