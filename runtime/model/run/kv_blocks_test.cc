#include "runtime/model/run/kv_blocks.h"

#include <set>

#include "gtest/gtest.h"
#include "runtime/model/arch/segment_graph.h"

namespace trine {
namespace {

TEST(KvBlocksTest, PositionsFillBlocksInOrder) {
  auto pool = std::make_shared<KvBlockPool>(4);
  BlockTable table(pool);
  ASSERT_TRUE(table.Reserve(kBlockPositions + 1).ok());
  ASSERT_EQ(table.blocks().size(), 2u);
  EXPECT_EQ(table.SlotOf(0), table.blocks()[0] * kBlockPositions);
  EXPECT_EQ(table.SlotOf(kBlockPositions - 1), table.SlotOf(0) + kBlockPositions - 1);
  EXPECT_EQ(table.SlotOf(kBlockPositions), table.blocks()[1] * kBlockPositions);
}

TEST(KvBlocksTest, ReservingIsAllOrNothing) {
  auto pool = std::make_shared<KvBlockPool>(3);
  BlockTable a(pool), b(pool);
  ASSERT_TRUE(a.Reserve(2 * kBlockPositions).ok());
  EXPECT_EQ(b.Reserve(2 * kBlockPositions).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(b.blocks().empty());
  EXPECT_EQ(pool->free(), 1);
  EXPECT_TRUE(b.Reserve(kBlockPositions).ok());
}

TEST(KvBlocksTest, BlocksHaveOneOwnerAndComeBack) {
  auto pool = std::make_shared<KvBlockPool>(8);
  {
    BlockTable a(pool), b(pool);
    ASSERT_TRUE(a.Reserve(3 * kBlockPositions).ok());
    ASSERT_TRUE(b.Reserve(5 * kBlockPositions).ok());
    std::set<int32_t> all(a.blocks().begin(), a.blocks().end());
    all.insert(b.blocks().begin(), b.blocks().end());
    EXPECT_EQ(all.size(), 8u);
    b.Truncate(2 * kBlockPositions + 1);
    EXPECT_EQ(b.blocks().size(), 3u);
    EXPECT_EQ(pool->free(), 2);
    ASSERT_TRUE(a.Reserve(5 * kBlockPositions).ok());
  }
  EXPECT_EQ(pool->free(), pool->total());
}

TEST(KvBlocksTest, ABlockIsFreeWhenItsLastHolderLetsGo) {
  auto pool = std::make_shared<KvBlockPool>(3);
  BlockTable a(pool);
  ASSERT_TRUE(a.Reserve(2 * kBlockPositions).ok());
  {
    BlockTable b(pool);
    ASSERT_TRUE(b.Reserve(kBlockPositions).ok());
    b.Adopt(a.blocks());  // replaces its own blocks
    EXPECT_EQ(b.blocks(), a.blocks());
    EXPECT_EQ(pool->free(), 1);
    EXPECT_TRUE(a.IsShared(0));
    a.Truncate(kBlockPositions);
    EXPECT_FALSE(b.IsShared(1));
    EXPECT_EQ(pool->free(), 1);
  }
  EXPECT_FALSE(a.IsShared(0));
  EXPECT_EQ(pool->free(), 2);
}

TEST(KvBlocksTest, WhoeverCanGiveBlocksBackIsAsked) {
  auto pool = std::make_shared<KvBlockPool>(4);
  BlockTable spare(pool), table(pool);
  ASSERT_TRUE(spare.Reserve(3 * kBlockPositions).ok());
  size_t asked_for = 0;
  pool->set_reclaim([&](size_t wanted) -> size_t {
    asked_for = wanted;
    if (spare.blocks().empty()) return 0;
    spare.Truncate((static_cast<int64_t>(spare.blocks().size()) - 1) * kBlockPositions);
    return 1;  // fewer than asked for, so it is called again
  });
  ASSERT_TRUE(table.Reserve(3 * kBlockPositions).ok());
  EXPECT_EQ(asked_for, 1u);
  EXPECT_EQ(spare.blocks().size(), 1u);
  EXPECT_FALSE(table.Reserve(5 * kBlockPositions).ok());
  EXPECT_EQ(table.blocks().size(), 3u);
}

}  // namespace
}  // namespace trine
