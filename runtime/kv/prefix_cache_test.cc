#include "runtime/kv/prefix_cache.h"

#include <memory>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "runtime/model/arch/segment_graph.h"

namespace trine {
namespace {

using ::testing::ElementsAre;
using Tokens = std::vector<int32_t>;

constexpr int64_t kBlock = kBlockPositions;

// Returns the tokens of full blocks, each given by one number.
Tokens Text(const std::vector<int32_t>& blocks) {
  Tokens tokens;
  for (const int32_t b : blocks) {
    for (int32_t i = 0; i < kBlock; ++i) tokens.push_back(1000 * b + i);
  }
  return tokens;
}

class PrefixCacheTest : public testing::Test {
 protected:
  // Offers blocks as a sequence that has evaluated these tokens would. Returns the blocks.
  std::vector<int32_t> Read(const std::string& space, const Tokens& tokens) {
    BlockTable table(pool_);
    EXPECT_TRUE(table.Reserve(static_cast<int64_t>(tokens.size())).ok());
    cache_->Offer(space, tokens, &table);
    return table.blocks();
  }
  int64_t Look(const std::string& space, const Tokens& tokens, BlockTable* table,
               int64_t from = 0) {
    return cache_->Adopt(space, tokens, from, false, table);
  }
  bool Has(const Tokens& tokens) {
    BlockTable table(pool_);
    return Look("a", tokens, &table) == static_cast<int64_t>(tokens.size());
  }

  std::shared_ptr<KvBlockPool> pool_ = std::make_shared<KvBlockPool>(8);
  std::unique_ptr<PrefixCache> cache_ = std::make_unique<PrefixCache>(pool_);
};

TEST_F(PrefixCacheTest, FindsTheLongestRunOfFullBlocks) {
  const std::vector<int32_t> blocks = Read("a", Text({1, 2, 3}));
  BlockTable table(pool_);
  EXPECT_EQ(Look("a", Text({1, 2, 9}), &table), 2 * kBlock);
  EXPECT_THAT(table.blocks(), ElementsAre(blocks[0], blocks[1]));
  // A block counts when all of its tokens are there, and the ones before it too.
  Tokens cut = Text({1, 2, 3});
  cut.pop_back();
  BlockTable other(pool_);
  EXPECT_EQ(Look("a", cut, &other), 2 * kBlock);
  EXPECT_EQ(Look("a", Text({2, 3}), &other), 0);
  cut = Text({1, 2});
  ++cut[kBlock - 1];
  EXPECT_EQ(Look("a", cut, &other), 0);
  EXPECT_EQ(cache_->counters().lookups, 4u);
  EXPECT_EQ(cache_->counters().hit_tokens, static_cast<uint64_t>(4 * kBlock));
}

TEST_F(PrefixCacheTest, WhatIsThereAlreadyIsNotAdopted) {
  Read("a", Text({1, 2}));
  BlockTable table(pool_);
  ASSERT_TRUE(table.Reserve(2 * kBlock).ok());
  const std::vector<int32_t> own = table.blocks();
  EXPECT_EQ(Look("a", Text({1, 2}), &table, 2 * kBlock), 2 * kBlock);
  EXPECT_EQ(table.blocks(), own);
  EXPECT_EQ(Look("a", Text({1, 2}), &table, kBlock + 5), 2 * kBlock);
  EXPECT_NE(table.blocks(), own);
  EXPECT_EQ(cache_->counters().hit_tokens, static_cast<uint64_t>(kBlock - 5));
}

TEST_F(PrefixCacheTest, SpacesSeeNothingOfEachOther) {
  Read("a", Text({1, 2}));
  BlockTable table(pool_);
  for (const char* space : {"b", "", "a "}) EXPECT_EQ(Look(space, Text({1, 2}), &table), 0);
  Read("", Text({1}));
  EXPECT_EQ(cache_->counters().held_blocks, 3);
  EXPECT_EQ(Look("", Text({1, 2}), &table), kBlock);
}

TEST_F(PrefixCacheTest, TheSameTextIsKeptOnce) {
  const std::vector<int32_t> first = Read("a", Text({1, 2}));
  BlockTable table(pool_);
  ASSERT_TRUE(table.Reserve(3 * kBlock).ok());
  const std::vector<int32_t> own = table.blocks();
  cache_->Offer("a", Text({1, 2, 3}), &table);
  EXPECT_THAT(table.blocks(), ElementsAre(first[0], first[1], own[2]));
  EXPECT_EQ(cache_->counters().held_blocks, 3);
  EXPECT_EQ(pool_->free(), 5);
}

TEST_F(PrefixCacheTest, BlocksAreHeldUntilTheLastOneLetsGo) {
  Read("a", Text({1, 2}));
  EXPECT_EQ(pool_->free(), 6);
  {
    BlockTable table(pool_);
    ASSERT_EQ(Look("a", Text({1, 2}), &table), 2 * kBlock);
    EXPECT_TRUE(table.IsShared(0));
    cache_->Clear();
    EXPECT_FALSE(table.IsShared(0));
    EXPECT_EQ(cache_->counters().held_blocks, 0);
    EXPECT_EQ(pool_->free(), 6);
  }
  EXPECT_EQ(pool_->free(), 8);
  EXPECT_FALSE(Has(Text({1})));
}

// A block that is used often outlives later ones that are used once; but not for ever.
TEST_F(PrefixCacheTest, WhatIsOfUseStays) {
  Read("a", Text({1}));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Has(Text({1})));
  for (int32_t b = 10; b < 20; ++b) Read("a", Text({b}));  // each evicts another
  EXPECT_TRUE(Has(Text({1})));
  EXPECT_FALSE(Has(Text({10})));
  EXPECT_TRUE(Has(Text({19})));
  for (int32_t b = 100; b < 200; ++b) Read("a", Text({b}));
  EXPECT_FALSE(Has(Text({1})));
}

// Of two blocks with equal use the one goes whose tokens are less work to evaluate again.
TEST_F(PrefixCacheTest, WhatIsMoreWorkStays) {
  Read("a", Text({1, 2, 3, 4}));  // the last is behind the others
  Read("a", Text({7}));
  BlockTable table(pool_);
  ASSERT_TRUE(table.Reserve(4 * kBlock).ok());  // three are free
  EXPECT_FALSE(Has(Text({7})));
  EXPECT_TRUE(Has(Text({1, 2, 3, 4})));
}

TEST_F(PrefixCacheTest, TheOldestLeavesGoFirst) {
  Read("a", Text({1, 2}));
  Read("a", Text({1, 3}));
  Read("b", Text({4, 5}));
  EXPECT_TRUE(Has(Text({1, 2})));  // used after 3, 4 and 5
  BlockTable table(pool_);
  ASSERT_TRUE(table.Reserve(4 * kBlock).ok());  // three are free
  EXPECT_FALSE(Has(Text({1, 3})));
  EXPECT_TRUE(Has(Text({1, 2})));
  ASSERT_TRUE(table.Reserve(6 * kBlock).ok());
  EXPECT_TRUE(Has(Text({1, 2})));
  EXPECT_EQ(cache_->counters().evictions, 3u);
  EXPECT_EQ(cache_->counters().held_blocks, 2);
  // When the last blocks are evicted, a leaf goes before its parent.
  ASSERT_TRUE(table.Reserve(7 * kBlock).ok());
  EXPECT_FALSE(Has(Text({1, 2})));
  EXPECT_TRUE(Has(Text({1})));
  ASSERT_TRUE(table.Reserve(8 * kBlock).ok());
  EXPECT_EQ(cache_->counters().held_blocks, 0);
}

TEST_F(PrefixCacheTest, WhatASequenceHoldsStays) {
  Read("a", Text({1, 2}));
  Read("a", Text({3}));
  BlockTable holder(pool_), table(pool_);
  ASSERT_EQ(Look("a", Text({1, 2}), &holder), 2 * kBlock);
  EXPECT_EQ(table.Reserve(7 * kBlock).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(table.blocks().empty());
  EXPECT_TRUE(Has(Text({1, 2})));
  EXPECT_TRUE(table.Reserve(6 * kBlock).ok());
  EXPECT_FALSE(Has(Text({3})));
  EXPECT_TRUE(Has(Text({1, 2})));
}

TEST_F(PrefixCacheTest, ATableLetsGoOfWhatOthersHold) {
  Read("a", Text({1, 2, 3}));
  BlockTable table(pool_);
  ASSERT_EQ(Look("a", Text({1, 2, 3}), &table), 3 * kBlock);
  ASSERT_TRUE(table.Reserve(5 * kBlock).ok());
  const std::vector<int32_t> before = table.blocks();
  table.LetGoOfShared(1);  // its own blocks move up
  EXPECT_THAT(table.blocks(), ElementsAre(before[0], before[3], before[4]));
  EXPECT_TRUE(Has(Text({1, 2, 3})));
  EXPECT_EQ(pool_->free(), 3);
}

TEST_F(PrefixCacheTest, NothingIsLeftBehind) {
  {
    BlockTable table(pool_);
    Read("a", Text({1, 2, 3}));
    Read("b", Text({1, 2}));
    EXPECT_EQ(Look("a", Text({1, 2}), &table), 2 * kBlock);
    cache_.reset();
    EXPECT_EQ(pool_->free(), 6);
    EXPECT_TRUE(table.Reserve(8 * kBlock).ok());  // the cache is gone
  }
  EXPECT_EQ(pool_->free(), 8);
}

}  // namespace
}  // namespace trine
