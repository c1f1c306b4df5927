#include "runtime/embedding/block_budget.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace trine {
namespace {

TEST(BlockBudgetTest, TakesTheFirstThatFit) {
  BlockBudget budget(10);
  const std::vector<int64_t> sizes = {4, 5, 2, 1};
  // 2 does not fit after 4 and 5, and the 1 after it is not taken before its turn.
  EXPECT_EQ(budget.Take(sizes), 2u);
  const std::vector<int64_t> one = {1};
  EXPECT_EQ(budget.Take(one), 1u);
  budget.GiveBack(10);
  const std::vector<int64_t> all = {10};
  EXPECT_EQ(budget.Take(all), 1u);
  EXPECT_EQ(budget.Take({}), 0u);
}

TEST(BlockBudgetTest, WaitsUntilThereIsRoom) {
  BlockBudget budget(3);
  const std::vector<int64_t> two = {2};
  ASSERT_EQ(budget.Take(two), 1u);
  std::atomic<bool> given_back{false};
  std::thread waiter([&] {
    EXPECT_EQ(budget.Take(two), 1u);
    EXPECT_TRUE(given_back);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  given_back = true;
  budget.GiveBack(2);
  waiter.join();
}

TEST(BlockBudgetTest, NoMoreIsOutThanThereIs) {
  constexpr int64_t kTotal = 7;
  BlockBudget budget(kTotal);
  std::atomic<int64_t> out{0};
  std::atomic<bool> exceeded{false};
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<int64_t> sizes = {1 + t, 1, 2};
      for (int i = 0; i < 500; ++i) {
        int64_t mine = 0;
        for (size_t n = budget.Take(sizes); n > 0; --n) mine += sizes[n - 1];
        if ((out += mine) > kTotal) exceeded = true;
        out -= mine;
        budget.GiveBack(mine);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_FALSE(exceeded);
  const std::vector<int64_t> all = {kTotal};
  EXPECT_EQ(budget.Take(all), 1u);
}

}  // namespace
}  // namespace trine
