#include "runtime/graph/arena.h"

#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace trine {
namespace {

constexpr uint64_t kChunk = 1 << 16;

TEST(ArenaTest, HandlesStayWhileItGrows) {
  Arena arena(kChunk);
  std::vector<Handle> handles;
  for (uint32_t i = 0; i < 100; ++i) {
    const auto handle = arena.Advance(5000 + i);
    ASSERT_TRUE(handle.ok());
    std::memset(arena.At(*handle), static_cast<int>(i), handle->bytes);
    handles.push_back(*handle);
  }
  for (uint32_t i = 0; i < handles.size(); ++i) {
    EXPECT_EQ(arena.Block(i), handles[i]);
    EXPECT_EQ(*arena.At(handles[i]), std::byte(i));
    EXPECT_EQ(*arena.At(handles[i].Part(handles[i].bytes - 1, 1)), std::byte(i));
  }
  EXPECT_GE(arena.bytes(), uint64_t{100} * 5000);
}

TEST(ArenaTest, ABlockMayBeLargerThanAChunk) {
  Arena arena(kChunk);
  ASSERT_TRUE(arena.Advance(100).ok());
  const auto large = arena.Advance(10 * kChunk);
  ASSERT_TRUE(large.ok());
  std::memset(arena.At(*large), 7, large->bytes);
  const auto behind = arena.Advance(100);
  ASSERT_TRUE(behind.ok());
  EXPECT_GE(behind->offset, large->offset + large->bytes);
}

TEST(ArenaTest, GoingBackGivesTheSameOffsetsAgain) {
  Arena arena(kChunk);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(arena.Advance(3000).ok());
  const Handle tenth = arena.Block(10);
  const uint64_t bytes = arena.bytes();
  arena.Regress(10);
  EXPECT_EQ(arena.now(), 10u);
  EXPECT_EQ(*arena.Advance(3000), tenth);
  for (int i = 0; i < 39; ++i) ASSERT_TRUE(arena.Advance(3000).ok());
  EXPECT_EQ(arena.bytes(), bytes);
}

TEST(ArenaTest, BlocksNeverOverlapWhateverCameBefore) {
  std::mt19937 random(1);
  Arena arena(kChunk);
  std::vector<uint8_t> marks;
  for (int step = 0; step < 3000; ++step) {
    if (random() % 5 == 0) {
      const size_t time = random() % (arena.now() + 1);
      arena.Regress(time);
      marks.resize(time);
    }
    const uint64_t bytes = 1 + random() % (random() % 20 == 0 ? 3 * kChunk : kChunk / 8);
    const auto handle = arena.Advance(bytes);
    ASSERT_TRUE(handle.ok());
    marks.push_back(static_cast<uint8_t>(random()));
    std::memset(arena.At(*handle), marks.back(), bytes);
    const size_t other = random() % marks.size();
    const Handle block = arena.Block(other);
    EXPECT_EQ(*arena.At(block), std::byte(marks[other]));
    EXPECT_EQ(*arena.At(block.Part(block.bytes - 1, 1)), std::byte(marks[other]));
  }
}

TEST(ArenaTest, PoisonIsNotANumber) {
  Arena arena;
  const auto handle = arena.Advance(64);
  ASSERT_TRUE(handle.ok());
  arena.Poison(handle->Part(8, 4));
  float value = 0;
  std::memcpy(&value, arena.At(handle->Part(8, 4)), sizeof(value));
  EXPECT_NE(value, value);
}

}  // namespace
}  // namespace trine
