// What a store holds, and what goes when it is full: GreedyDual-Size, leaves first.
//
// A block is worth what it saves: the work of computing it again, which grows with the positions
// before it, over the bytes it takes, times how often it was used (up to 8 times). Its rank is that
// plus the age, which is the rank of the last block that went: so blocks that are not used fall
// behind, the cheaper the sooner. Among equals the least recently used is first. A block with
// others behind it in the store stays, whatever its rank: without it they would be of no use.
//
// A new block always finds room, as long as there is a block that may go. Where only those before
// it are left it is declined; so are those behind one that was declined, as long as there is no
// room without giving up others.
//
// Not thread-safe: the store that owns it has a lock.
#ifndef TRINE_RUNTIME_KV_STORE_STORE_INDEX_H_
#define TRINE_RUNTIME_KV_STORE_STORE_INDEX_H_

#include <cstddef>
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
  uint64_t block_bytes = 0;  // as it is on a device: stands for the work per token
  uint64_t bytes = 0;        // that it takes in the store
};

class StoreIndex {
 public:
  explicit StoreIndex(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  enum class Answer {
    kThere,     // and counts as used
    kPromised,  // somebody else is about to bring it
    kRoom,      // made, if need be: the caller brings it
    kDeclined,
  };
  // Makes room for a block that the caller is about to bring. Those that have to go are out of the
  // index already, and are appended to `gone`.
  Answer Promise(const StoreItem& item, std::vector<Hash256>* gone);
  // It is there; also where it was never promised, or was by another.
  void Arrived(const StoreItem& item);
  // It will not come. Nothing, where another has brought it.
  void Broken(const Hash256& key);

  // Those that were there before the index was, the least recently used first: they rank as if they
  // had come one by one while a store of blocks of their mean worth was replaced once. Where the
  // index has blocks already they rank as new ones. May leave more than max_bytes.
  void Load(const std::vector<StoreItem>& items);
  // Gives up blocks until there are no more than max_bytes.
  void Trim(std::vector<Hash256>* gone);

  bool Has(const Hash256& key) const;  // and it is not only promised
  bool Use(const Hash256& key);        // false: it is not there
  void Erase(const Hash256& key);
  std::vector<Hash256> Keys() const;  // of what Has

  uint64_t blocks() const { return entries_.size(); }  // promised ones too
  uint64_t bytes() const { return bytes_; }

  // At this many positions attention is as much work as all else.
  static constexpr double kAttentionPositions = 16384;
  static constexpr uint32_t kMostUses = 8;

 private:
  using Order = std::tuple<double, uint64_t, Hash256>;  // rank, when it was used, key
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
  absl::flat_hash_map<Hash256, uint32_t> children_;  // how many, of keys that are not here too
  std::set<Order> leaves_;                           // that are there and have none behind them
  absl::flat_hash_set<Hash256> declined_;            // lately
  uint64_t bytes_ = 0;
  uint64_t clock_ = 0;
  double age_ = 0;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_KV_STORE_STORE_INDEX_H_
