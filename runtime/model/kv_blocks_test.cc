#include "runtime/model/kv_blocks.h"

#include <set>

#include "gtest/gtest.h"
#include "runtime/model/segment_graph.h"

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

}  // namespace
}  // namespace trine
