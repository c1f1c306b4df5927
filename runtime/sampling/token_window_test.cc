#include "runtime/sampling/token_window.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "kernels/quant/test_util.h"

namespace trine {
namespace {

std::map<int32_t, int32_t> CountsOf(const TokenWindow& window) {
  std::map<int32_t, int32_t> counts;
  window.ForEach([&](int32_t token, int32_t count) { counts[token] = count; });
  return counts;
}

TEST(TokenWindowTest, CountsLikeARecount) {
  for (const int32_t length : {1, 2, 3, 7, 64, 1000, -1}) {
    for (const int64_t vocab : {1, 3, 40, 100000}) {
      quant::Random random(static_cast<uint64_t>(length * 31 + vocab));
      TokenWindow window(length);
      std::deque<int32_t> recent;
      for (int i = 0; i < 3000; ++i) {
        // Multiples of a large power of two collide in the table.
        const auto token = static_cast<int32_t>(random.Below(vocab)) * 16384;
        window.Add(token);
        recent.push_back(token);
        if (length > 0 && recent.size() > static_cast<size_t>(length)) recent.pop_front();
        if (i % 97 != 0 && i < 2990) continue;
        std::map<int32_t, int32_t> want;
        for (const int32_t t : recent) ++want[t];
        ASSERT_EQ(CountsOf(window), want) << "length " << length << " vocab " << vocab;
        ASSERT_EQ(window.distinct(), static_cast<int32_t>(want.size()));
        ASSERT_EQ(window.Count(token), want[token]);
        ASSERT_EQ(window.Count(5), 0);
      }
    }
  }
}

TEST(TokenWindowTest, OfLengthZeroHoldsNothing) {
  TokenWindow window(0);
  window.Add(3);
  EXPECT_EQ(window.Count(3), 0);
  EXPECT_EQ(window.distinct(), 0);
}

TEST(TokenWindowTest, CopiesGoTheirOwnWay) {
  TokenWindow window(2);
  window.Add(1);
  TokenWindow copy = window;
  copy.Add(2);
  copy.Add(3);
  EXPECT_EQ(CountsOf(window), (std::map<int32_t, int32_t>{{1, 1}}));
  EXPECT_EQ(CountsOf(copy), (std::map<int32_t, int32_t>{{2, 1}, {3, 1}}));
  copy.Clear();
  EXPECT_EQ(copy.distinct(), 0);
  copy.Add(9);
  EXPECT_EQ(copy.Count(9), 1);
}

}  // namespace
}  // namespace trine
