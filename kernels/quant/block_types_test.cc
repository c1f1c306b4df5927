#include "kernels/quant/block_types.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

namespace trine::quant {
namespace {

TEST(BlockTypesTest, EveryTypeHasItsOwnNameAndASize) {
  std::set<std::string> names;
  for (Type type : kAllTypes) {
    const TypeTraits traits = Traits(type);
    EXPECT_TRUE(names.insert(traits.name).second) << traits.name;
    EXPECT_GT(traits.block_bytes, 0) << traits.name;
    EXPECT_EQ(IsQuantized(type), traits.block_values % 32 == 0) << traits.name;
  }
}

TEST(BlockTypesTest, AnUnknownNumberHasNoSize) {
  const Type unknown = static_cast<Type>(99);
  uint64_t bytes = 0;
  EXPECT_EQ(Traits(unknown).block_bytes, 0);
  EXPECT_FALSE(RowBytes(unknown, 32, &bytes));
}

TEST(BlockTypesTest, RowBytesCountsWholeBlocks) {
  uint64_t bytes = 0;
  ASSERT_TRUE(RowBytes(Type::kQ4_0, 4096, &bytes));
  EXPECT_EQ(bytes, 4096u / 32 * 18);
  ASSERT_TRUE(RowBytes(Type::kQ6_K, 512, &bytes));
  EXPECT_EQ(bytes, 420u);
  ASSERT_TRUE(RowBytes(Type::kF16, 7, &bytes));
  EXPECT_EQ(bytes, 14u);
  ASSERT_TRUE(RowBytes(Type::kQ8_0, 0, &bytes));
  EXPECT_EQ(bytes, 0u);
}

TEST(BlockTypesTest, RowBytesRefusesPartsOfBlocksAndOverflow) {
  uint64_t bytes = 0;
  EXPECT_FALSE(RowBytes(Type::kQ4_0, 33, &bytes));
  EXPECT_FALSE(RowBytes(Type::kQ4_K, 32, &bytes));
  EXPECT_FALSE(RowBytes(Type::kF32, -1, &bytes));
  EXPECT_FALSE(RowBytes(Type::kF32, std::numeric_limits<int64_t>::max(), &bytes));
}

}  // namespace
}  // namespace trine::quant
