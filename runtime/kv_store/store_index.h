// Lists the blocks of a store and decides which blocks are removed when it is full. The method is
// GreedyDual-Size, with leaves first.
//
// The worth of a block is the work of computing it again, which grows with the positions before it,
// divided by the block's bytes, times the number of its uses (up to 8). When a block is used, its
// rank becomes its worth plus the age of the index; the age is the rank of the last block that was
// removed. The block with the lowest rank is removed first, so blocks that are not used are removed
// in the end, and sooner if they are cheap. Among equal ranks the least recently used block is
// removed first. A block that has children in the store stays, whatever its rank, because its
// children are useless without it.
//
// A new block gets room if another block may be removed. It is declined if only its ancestors are
// left. It is also declined if its parent was declined and other blocks would have to be removed.
//
// Not thread-safe: the store that owns the index has a lock.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "runtime/kv_store/hash256.h"

namespace trine {

struct StoreItem {
  Hash256 key, parent;
  uint64_t first_position = 0;
  uint64_t block_bytes = 0;  // the size on a device; stands for the work per token
  uint64_t bytes = 0;        // the size in the store
};

class StoreIndex {
 public:
  explicit StoreIndex(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  enum class Answer {
    kThere,     // the block is in the store, and counts as used
    kPromised,  // another caller is about to bring the block
    kRoom,      // there is room; the caller must bring the block
    kDeclined,  // there is no room
  };
  // Makes room for a block that the caller is about to bring. Removes blocks from the index for
  // that and appends their keys to `gone`.
  Answer Promise(const StoreItem& item, std::vector<Hash256>* gone);
  // Records that the block is in the store. Neither this caller nor another one need have called
  // Promise.
  void Arrived(const StoreItem& item);
  // Withdraws a promise. Does nothing if another caller has brought the block.
  void Broken(const Hash256& key);

  // Adds blocks that the store held before, the least recently used first. If the index has other
  // blocks, the added blocks rank as new. If the index is empty, its age rises from 0 to the added
  // blocks' mean worth, so that recently used blocks rank higher. May exceed max_bytes.
  void Load(const std::vector<StoreItem>& items);
  // Removes blocks until there are at most max_bytes. Appends their keys to `gone`.
  void Trim(std::vector<Hash256>* gone);

  bool Has(const Hash256& key) const;  // false for a block that is only promised
  bool Use(const Hash256& key);        // returns false if the block is not in the store
  void Erase(const Hash256& key);
  std::vector<Hash256> Keys() const;  // the keys of all blocks that Has finds

  uint64_t blocks() const { return entries_.size(); }  // including promised blocks
  uint64_t bytes() const { return bytes_; }

  // Worth assumes that with this many positions, attention is as much work as all other ops.
  static constexpr double kAttentionPositions = 16384;
  static constexpr uint32_t kMostUses = 8;

 private:
  using Order = std::tuple<double, uint64_t, Hash256>;  // rank, used_at, key
  struct Entry {
    StoreItem item;
    double rank = 0;
    uint64_t used_at = 0;
    uint32_t uses = 1;
    bool there = false;
  };

  static double Worth(const StoreItem& item);
  static Order OrderOf(const Entry& e) { return {e.rank, e.used_at, e.item.key}; }
  bool IsLeaf(const Entry& e) const { return e.there && !children_.contains(e.item.key); }
  Entry& Insert(const StoreItem& item);
  void Rank(Entry* e);
  void AddLeaf(const Hash256& key);
  void Remove(absl::flat_hash_map<Hash256, Entry>::iterator at);
  bool GiveUpOne(std::vector<Hash256>* gone);

  const uint64_t max_bytes_;
  absl::flat_hash_map<Hash256, Entry> entries_;
  absl::flat_hash_map<Hash256, uint32_t> children_;  // how many children; also of absent blocks
  std::set<Order> leaves_;                           // present blocks without children
  absl::flat_hash_set<Hash256> declined_;            // blocks that were declined recently
  uint64_t bytes_ = 0;
  uint64_t clock_ = 0;
  double age_ = 0;
};

}  // namespace trine
