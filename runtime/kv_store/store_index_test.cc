#include "runtime/kv_store/store_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace trine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Hash256 Key(uint64_t n) {
  Hash256 key;
  std::memcpy(key.bytes.data(), &n, sizeof(n));
  return key;
}

StoreItem Item(uint64_t key, uint64_t parent, uint64_t depth = 0, uint64_t bytes = 10) {
  return {Key(key), Key(parent), depth * 64, 10, bytes};
}

std::vector<Hash256> Bring(StoreIndex* index, const StoreItem& item) {
  std::vector<Hash256> gone;
  if (index->Promise(item, &gone) == StoreIndex::Answer::kRoom) index->Arrived(item);
  return gone;
}

TEST(StoreIndexTest, TheLeastRecentlyUsedOfEqualsGoes) {
  StoreIndex index(30);
  for (uint64_t n = 1; n <= 3; ++n) EXPECT_THAT(Bring(&index, Item(n, 0)), IsEmpty());
  EXPECT_THAT(Bring(&index, Item(4, 0)), ElementsAre(Key(1)));
  EXPECT_TRUE(index.Use(Key(2)));
  EXPECT_THAT(Bring(&index, Item(5, 0)), ElementsAre(Key(3)));
  EXPECT_FALSE(index.Use(Key(3)));
  EXPECT_EQ(index.bytes(), 30u);
  EXPECT_EQ(index.blocks(), 3u);
}

TEST(StoreIndexTest, NoParentBeforeItsChildren) {
  StoreIndex index(40);
  Bring(&index, Item(1, 0, 0));
  Bring(&index, Item(2, 1, 1));
  Bring(&index, Item(3, 2, 2));
  Bring(&index, Item(9, 0, 0));
  for (int i = 0; i < 20; ++i) index.Use(Key(3));  // children stay in use, parents don't
  EXPECT_THAT(Bring(&index, Item(10, 0)), ElementsAre(Key(9)));
  index.Erase(Key(10));
  EXPECT_THAT(Bring(&index, Item(4, 3, 3)), IsEmpty());
  std::vector<Hash256> gone;
  EXPECT_EQ(index.Promise(Item(5, 4, 4), &gone),
            StoreIndex::Answer::kDeclined);  // all others are its ancestors
  // Its parent was declined.
  EXPECT_EQ(index.Promise(Item(6, 5, 5), &gone), StoreIndex::Answer::kDeclined);
  EXPECT_THAT(gone, IsEmpty());
  EXPECT_THAT(Bring(&index, Item(11, 0)), ElementsAre(Key(4)));
}

TEST(StoreIndexTest, ChildrenMayComeFirst) {
  StoreIndex index(20);
  Bring(&index, Item(2, 1, 1));
  EXPECT_THAT(Bring(&index, Item(1, 0, 0)), IsEmpty());
  EXPECT_THAT(Bring(&index, Item(9, 0)), ElementsAre(Key(2)));
}

TEST(StoreIndexTest, DeepAndSmallOnesAreWorthMore) {
  StoreIndex index(30);
  Bring(&index, Item(1, 100, 1000));  // 64000 positions: five times the work
  Bring(&index, Item(2, 200, 0));
  Bring(&index, Item(3, 300, 0, 4));  // less than half the bytes
  EXPECT_THAT(Bring(&index, Item(4, 400, 0)), ElementsAre(Key(2)));
  EXPECT_THAT(Bring(&index, Item(5, 500, 0)), ElementsAre(Key(4)));
}

TEST(StoreIndexTest, WhatIsPromisedIsNeitherThereNorGivenUp) {
  StoreIndex index(20);
  std::vector<Hash256> gone;
  EXPECT_EQ(index.Promise(Item(1, 0), &gone), StoreIndex::Answer::kRoom);
  EXPECT_FALSE(index.Has(Key(1)));
  EXPECT_FALSE(index.Use(Key(1)));
  EXPECT_EQ(index.Promise(Item(1, 0), &gone), StoreIndex::Answer::kPromised);
  EXPECT_EQ(index.Promise(Item(2, 0), &gone), StoreIndex::Answer::kRoom);
  EXPECT_EQ(index.Promise(Item(3, 0), &gone), StoreIndex::Answer::kDeclined);
  index.Broken(Key(1));
  EXPECT_EQ(index.bytes(), 10u);
  index.Arrived(Item(2, 0));
  index.Broken(Key(2));  // another caller failed to bring it
  EXPECT_TRUE(index.Has(Key(2)));
  EXPECT_EQ(index.Promise(Item(2, 0), &gone), StoreIndex::Answer::kThere);
  EXPECT_EQ(index.Promise(Item(4, 0, 0, 21), &gone), StoreIndex::Answer::kDeclined);
  EXPECT_THAT(gone, IsEmpty());
}

TEST(StoreIndexTest, WhatWasThereBeforeGoesByItsAge) {
  StoreIndex index(40);
  index.Load({Item(1, 0), Item(2, 0), Item(3, 0), Item(4, 0), Item(5, 0)});
  std::vector<Hash256> gone;
  index.Trim(&gone);
  EXPECT_THAT(gone, ElementsAre(Key(1)));
  EXPECT_THAT(Bring(&index, Item(6, 0)), ElementsAre(Key(2)));
  EXPECT_THAT(Bring(&index, Item(7, 0)), ElementsAre(Key(3)));
  index.Load({Item(8, 0)});  // another process has added it
  gone.clear();
  index.Trim(&gone);
  EXPECT_THAT(gone, ElementsAre(Key(4)));
}

// The policy in its plainest form: searches everything each time.
class Model {
 public:
  explicit Model(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  // Returns false if the block is declined.
  bool Put(const StoreItem& item, std::vector<Hash256>* gone) {
    if (blocks_.contains(item.key)) {
      Use(item.key);
      return true;
    }
    const bool fits = Bytes() + item.bytes <= max_bytes_;
    if (item.bytes > max_bytes_ || (!fits && declined_.contains(item.parent))) {
      declined_.insert(item.key);
      return false;
    }
    while (Bytes() + item.bytes > max_bytes_) {
      const Block* least = nullptr;
      for (const auto& [key, block] : blocks_) {
        if (key == item.parent || HasChild(key)) continue;
        if (least == nullptr ||
            std::pair(block.rank, block.used) < std::pair(least->rank, least->used)) {
          least = &block;
        }
      }
      if (least == nullptr) {
        declined_.insert(item.key);
        return false;
      }
      age_ = std::max(age_, least->rank);
      gone->push_back(least->item.key);
      blocks_.erase(Hash256(least->item.key));
    }
    declined_.erase(item.key);
    Block& block = blocks_[item.key];
    block.item = item;
    Rank(&block);
    return true;
  }
  void Use(const Hash256& key) {
    const auto at = blocks_.find(key);
    if (at == blocks_.end()) return;
    at->second.uses = std::min(at->second.uses + 1, 8);
    Rank(&at->second);
  }
  void Erase(const Hash256& key) { blocks_.erase(key); }
  uint64_t Bytes() const {
    uint64_t bytes = 0;
    for (const auto& [key, block] : blocks_) bytes += block.item.bytes;
    return bytes;
  }
  bool Has(const Hash256& key) const { return blocks_.contains(key); }

 private:
  struct Block {
    StoreItem item;
    int uses = 1;
    double rank = 0;
    int used = 0;
  };
  bool HasChild(const Hash256& key) const {
    return std::any_of(blocks_.begin(), blocks_.end(),
                       [&](const auto& b) { return b.second.item.parent == key; });
  }
  void Rank(Block* b) {
    const double positions = static_cast<double>(b->item.first_position);
    const double worth = static_cast<double>(b->item.block_bytes) * (1 + positions / 16384) /
                         static_cast<double>(b->item.bytes);
    b->rank = age_ + worth * b->uses;
    b->used = ++clock_;
  }

  const uint64_t max_bytes_;
  std::map<Hash256, Block> blocks_;
  std::set<Hash256> declined_;
  double age_ = 0;
  int clock_ = 0;
};

TEST(StoreIndexTest, DoesWhatTheModelDoes) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    // A random forest: the parent of block n is an earlier block, or none.
    std::vector<StoreItem> items = {{}};
    std::vector<uint64_t> depth = {0};
    for (uint64_t n = 1; n <= 150; ++n) {
      const uint64_t parent = random() % 4 == 0 ? 0 : random() % n;
      depth.push_back(parent == 0 ? 0 : depth[parent] + 1);
      items.push_back(Item(n, parent, 20 * depth[n], 5 + random() % 3 * 5));
    }
    const uint64_t max_bytes = 50 + random() % 500;
    StoreIndex index(max_bytes);
    Model model(max_bytes);
    for (int step = 0; step < 1500; ++step) {
      const StoreItem& item = items[1 + random() % 150];
      switch (random() % 8) {
        case 0:
          index.Erase(item.key);
          model.Erase(item.key);
          break;
        case 1:
        case 2:
          index.Use(item.key);
          model.Use(item.key);
          break;
        default: {
          std::vector<Hash256> gone, expected;
          const StoreIndex::Answer answer = index.Promise(item, &gone);
          if (answer == StoreIndex::Answer::kRoom) index.Arrived(item);
          ASSERT_EQ(answer != StoreIndex::Answer::kDeclined, model.Put(item, &expected));
          ASSERT_EQ(gone, expected) << "seed " << seed << " step " << step;
        }
      }
      ASSERT_EQ(index.bytes(), model.Bytes());
      ASSERT_LE(index.bytes(), max_bytes);
      ASSERT_EQ(index.Has(item.key), model.Has(item.key));
    }
  }
}

}  // namespace
}  // namespace trine
