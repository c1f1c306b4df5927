#include <random>
#include <vector>

#include "backends/vulkan/memory/memory.h"
#include "gtest/gtest.h"

namespace trine::vulkan {
namespace {

TEST(RangeAllocatorTest, TakesAlignedRangesAndJoinsWhatComesBack) {
  RangeAllocator ranges(1000);
  EXPECT_EQ(ranges.Take(100, 256), 0u);
  EXPECT_EQ(ranges.Take(100, 256), 256u);
  EXPECT_EQ(ranges.Take(10, 1), 100u) << "the smallest gap that holds it";
  EXPECT_EQ(ranges.Take(1000, 1), std::nullopt);
  ranges.GiveBack(0, 100);
  ranges.GiveBack(256, 100);
  EXPECT_FALSE(ranges.all_free());
  ranges.GiveBack(100, 10);
  EXPECT_TRUE(ranges.all_free());
  EXPECT_EQ(ranges.Take(1000, 256), 0u);
}

TEST(RangeAllocatorTest, NoGapIsUsedThatOnlyFitsUnaligned) {
  RangeAllocator ranges(600);
  EXPECT_EQ(ranges.Take(1, 1), 0u);
  EXPECT_EQ(ranges.Take(400, 256), std::nullopt);
  EXPECT_EQ(ranges.Take(344, 256), 256u);
}

TEST(RangeAllocatorTest, HoldsUnderRandomUse) {
  std::mt19937 random(1);
  constexpr uint64_t kBytes = 1 << 16;
  RangeAllocator ranges(kBytes);
  std::vector<bool> taken(kBytes);
  std::vector<std::pair<uint64_t, uint64_t>> held;
  for (int step = 0; step < 5000; ++step) {
    if (random() % 2 == 0 || held.empty()) {
      const uint64_t bytes = 1 + random() % 3000, alignment = uint64_t{1} << random() % 9;
      const auto offset = ranges.Take(bytes, alignment);
      if (!offset.has_value()) continue;
      ASSERT_EQ(*offset % alignment, 0u);
      ASSERT_LE(*offset + bytes, kBytes);
      for (uint64_t i = *offset; i < *offset + bytes; ++i) {
        ASSERT_FALSE(taken[i]);
        taken[i] = true;
      }
      held.push_back({*offset, bytes});
    } else {
      std::swap(held[random() % held.size()], held.back());
      const auto [offset, bytes] = held.back();
      held.pop_back();
      for (uint64_t i = offset; i < offset + bytes; ++i) taken[i] = false;
      ranges.GiveBack(offset, bytes);
    }
  }
  for (const auto& [offset, bytes] : held) ranges.GiveBack(offset, bytes);
  EXPECT_TRUE(ranges.all_free());
  EXPECT_EQ(ranges.Take(kBytes, 1), 0u);
}

}  // namespace
}  // namespace trine::vulkan
