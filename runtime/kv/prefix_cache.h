// Keeps KV blocks of evaluated tokens for other sequences that begin with the same tokens. Each
// space has a tree of full blocks; the path to a block is the tokens up to its end. The bits of a
// block depend only on these tokens (docs/numerics.md), so a sequence that adopts blocks continues
// as if it had evaluated them. No space finds blocks of another. Thread-safe.
//
// The tree is one of a block's holders. When the pool runs out, the tree gives back blocks that it
// holds alone, so the cache takes no room from sequences. It evicts only leaves, and among leaves
// the one with the lowest rank. A rank is the number of a block's uses times the work of evaluating
// its tokens again, which grows with the tokens before them. To that is added the age at its last
// use: the highest rank of a block evicted by then. So blocks that are not used any more fall back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/model/run/kv_blocks.h"

namespace trine {

struct PrefixCacheCounters {
  uint64_t lookups = 0;     // lookups of prompts with at least a full block
  uint64_t hit_tokens = 0;  // tokens that need not be evaluated again
  uint64_t evictions = 0;   // blocks given back because others needed them
  int64_t held_blocks = 0;  // blocks in the trees, whether sequences hold them too or not
  int64_t total_blocks = 0, free_blocks = 0;
};

class PrefixCache {
 public:
  explicit PrefixCache(std::shared_ptr<KvBlockPool> pool);
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  // Finds the longest run of full blocks that `tokens` begin with. If the run has more than `from`
  // tokens, makes its blocks the first blocks of `table` and returns its number of tokens;
  // otherwise returns `from`. `again`: the lookup repeats an earlier one and is not counted.
  int64_t Adopt(const std::string& space, std::span<const int32_t> tokens, int64_t from, bool again,
                BlockTable* table);
  // Returns the number of tokens that Adopt would find. Changes no counters.
  int64_t Holds(const std::string& space, std::span<const int32_t> tokens) const;
  // Adds the full blocks of `tokens` from `table`. If the tree already has a block, the table takes
  // that block and lets go of its own. REQUIRES: all of `tokens` have been evaluated into `table`,
  // and no pass that uses the table is in flight.
  void Offer(const std::string& space, std::span<const int32_t> tokens, BlockTable* table);
  // Removes all blocks: the KV cache's contents are gone.
  void Clear();

  PrefixCacheCounters counters() const;

 private:
  struct TokensLess {
    using is_transparent = void;
    bool operator()(std::span<const int32_t> a, std::span<const int32_t> b) const;
  };
  struct Node;
  using Children = std::map<std::vector<int32_t>, std::unique_ptr<Node>, TokensLess>;
  struct Node {
    Node* parent = nullptr;                        // null: the root of a space, without a block
    const std::string* space = nullptr;            // the space, if this is its root
    const std::vector<int32_t>* tokens = nullptr;  // its key in its parent's children
    Children children;
    int32_t block = 0;
    int64_t first_position = 0;
    uint32_t uses = 0;
    double rank = 0;
    uint64_t used_at = 0;
  };
  struct GoesFirst {
    bool operator()(const Node* a, const Node* b) const {
      return std::tie(a->rank, a->used_at) < std::tie(b->rank, b->used_at);
    }
  };

  Node* SpaceOf(const std::string& space);
  Node* AddChild(Node* parent, std::span<const int32_t> tokens, int32_t block);
  void Touch(Node* node);
  void Remove(Node* leaf);
  size_t Evict(size_t wanted);

  const std::shared_ptr<KvBlockPool> pool_;
  mutable std::mutex mutex_;  // guards the members below; taken before the pool's mutex
  std::map<std::string, Node> spaces_;
  std::set<Node*, GoesFirst> leaves_;
  int64_t nodes_ = 0;
  double age_ = 0;
  uint64_t clock_ = 0;
  PrefixCacheCounters counters_;
};

}  // namespace trine
