#include "runtime/make_model/skew.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/make_model/weights.h"

namespace trine {
namespace {

// Draws logits as random weights give them, and counts the hits of the much chosen tenth.
double ShareOfTenth(int64_t experts, int64_t used, double factor) {
  const std::vector<float> rows = SkewedRows("blk.0.ffn_gate_inp.weight", experts, factor);
  const RandomValues random(3, "logits");
  int64_t hits = 0;
  constexpr int64_t kTokens = 4000;
  for (int64_t token = 0; token < kTokens; ++token) {
    std::vector<double> logits(rows.size());
    for (size_t e = 0; e < rows.size(); ++e) {
      // The sum of many random numbers is nearer to a normal distribution than one of them.
      for (uint64_t i = 0; i < 8; ++i) {
        logits[e] += random.Normal((static_cast<uint64_t>(token) * rows.size() + e) * 8 + i);
      }
      logits[e] *= rows[e];
    }
    std::vector<size_t> order(rows.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::partial_sort(order.begin(), order.begin() + used, order.end(),
                      [&](size_t a, size_t b) { return logits[a] > logits[b]; });
    hits +=
        std::count_if(order.begin(), order.begin() + used, [&](size_t e) { return rows[e] == 1; });
  }
  return static_cast<double>(hits) / static_cast<double>(kTokens * used);
}

TEST(SkewTest, ATenthGetsItsShareOfTheHits) {
  for (const double share : {0.3, 0.6}) {
    const auto factor = SkewFactor(128, 8, share);
    ASSERT_TRUE(factor.ok()) << factor.status();
    EXPECT_NEAR(ShareOfTenth(128, 8, *factor), share, 0.03);
  }
}

TEST(SkewTest, EachRouterPrefersOthers) {
  const std::vector<float> one = SkewedRows("blk.0.ffn_gate_inp.weight", 128, 4);
  EXPECT_EQ(std::count(one.begin(), one.end(), 1.0f), 13);
  EXPECT_EQ(std::count(one.begin(), one.end(), 0.25f), 115);
  EXPECT_NE(one, SkewedRows("blk.1.ffn_gate_inp.weight", 128, 4));
}

TEST(SkewTest, ImpossibleSharesAreRefused) {
  EXPECT_FALSE(SkewFactor(8, 2, 0.6).ok()) << "a token chooses an expert once at most";
  EXPECT_FALSE(SkewFactor(128, 8, 0.05).ok()) << "less than without a skew";
}

}  // namespace
}  // namespace trine
