// KV blocks that sequences have read, kept for others that begin with the same tokens: a tree for
// each space, in which a node is a full block, found by the tokens in it behind those of its
// parents. What a block holds is a function of its tokens and of those before it, bit for bit
// (docs/numerics.md), so a sequence that adopts blocks goes on as if it had read them. Thread-safe.
//
// A space is whatever may share: nothing of one is seen from another.
//
// The tree is one of a block's holders. Those that nobody else holds are given back when the pool
// runs out; so whatever room there would be without a cache there is with one. No parent goes
// before its children; else the block goes that is worth least: how often it was used, times the
// work of reading its tokens again, which grows with those before them. What goes leaves its rank
// as the age that others begin with, so those that are no longer used fall behind.
#ifndef TRINE_RUNTIME_PREFIX_CACHE_H_
#define TRINE_RUNTIME_PREFIX_CACHE_H_

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

#include "runtime/model/kv_blocks.h"

namespace trine {

struct PrefixCacheCounters {
  uint64_t lookups = 0;     // prompts of a block at least that were looked for
  uint64_t hit_tokens = 0;  // that nobody had to read again
  uint64_t evictions = 0;   // blocks given back because others needed them
  int64_t held_blocks = 0;  // in the tree, whether a sequence holds them too or not
  int64_t total_blocks = 0, free_blocks = 0;
};

class PrefixCache {
 public:
  explicit PrefixCache(std::shared_ptr<KvBlockPool> pool);
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  // Finds the most full blocks that `tokens` begin with. Where they hold more than the first `from`
  // tokens, `table` begins with them from now on. Gives the tokens it then has, or `from`.
  // `again`: the same was looked for before, and does not count.
  int64_t Adopt(const std::string& space, std::span<const int32_t> tokens, int64_t from, bool again,
                BlockTable* table);
  // How many tokens Adopt would find. Nothing is counted.
  int64_t Holds(const std::string& space, std::span<const int32_t> tokens) const;
  // Takes the full blocks of `tokens`, all of which have been read into `table`. Where the tree has
  // them already, the table holds the tree's from now on, and gives its own back: no pass that uses
  // them may be under way.
  void Offer(const std::string& space, std::span<const int32_t> tokens, BlockTable* table);
  // The caches' contents are gone.
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
    Node* parent = nullptr;                        // none: it stands for a space, and has no block
    const std::string* space = nullptr;            // of such a one
    const std::vector<int32_t>* tokens = nullptr;  // its key at its parent's
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
  mutable std::mutex mutex_;  // guards what follows; the pool's is taken inside of it
  std::map<std::string, Node> spaces_;
  std::set<Node*, GoesFirst> leaves_;
  int64_t nodes_ = 0;
  double age_ = 0;
  uint64_t clock_ = 0;
  PrefixCacheCounters counters_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_PREFIX_CACHE_H_
