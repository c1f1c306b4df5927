#include "runtime/embedding/pooling.h"

#include <bit>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::vector<float>> kRows = {{1, 2, -2}, {3, 0, 4}, {-1, 4, 4}};

std::vector<float> Pool(Pooling pooling, int32_t normalize,
                        const std::vector<std::vector<float>>& rows = kRows) {
  Pooler pooler(pooling, normalize, static_cast<int64_t>(rows[0].size()),
                static_cast<int64_t>(rows.size()));
  for (const std::vector<float>& row : rows) pooler.Add(row);
  return pooler.Finish();
}

TEST(PoolingTest, PoolsAsItsNameSays) {
  EXPECT_THAT(Pool(Pooling::kNone, kNormalizeNone), ElementsAre(1, 2, -2, 3, 0, 4, -1, 4, 4));
  EXPECT_THAT(Pool(Pooling::kMean, kNormalizeNone), ElementsAre(1, 2, 2));
  EXPECT_THAT(Pool(Pooling::kCls, kNormalizeNone), ElementsAre(1, 2, -2));
  EXPECT_THAT(Pool(Pooling::kLast, kNormalizeNone), ElementsAre(-1, 4, 4));
}

TEST(PoolingTest, DividesByTheNormAskedFor) {
  EXPECT_THAT(Pool(Pooling::kCls, kNormalizeEuclidean),
              ElementsAre(1.0f / 3.0f, 2.0f / 3.0f, -2.0f / 3.0f));
  EXPECT_THAT(Pool(Pooling::kCls, 1), ElementsAre(0.2f, 0.4f, -0.4f));
  EXPECT_THAT(Pool(Pooling::kCls, kNormalizeMax), ElementsAre(16380, 32760, -32760));
  // Without pooling, each row is scaled on its own.
  EXPECT_THAT(Pool(Pooling::kNone, kNormalizeEuclidean, {{3, 4}, {0, -5}}),
              ElementsAre(0.6f, 0.8f, 0, -1));
}

TEST(PoolingTest, HigherNormsAreThoseOfTheLibrary) {
  for (int32_t p = 3; p <= kLargestNorm; ++p) {
    const std::vector<float> row = {0.5f, -7.25f, 3e-9f, 1024.0f, 1023.0f};
    double sum = 0;
    for (const float x : row) sum += std::pow(std::abs(x) / 1024.0, p);
    const double norm = 1024.0 * std::pow(sum, 1.0 / p);
    const std::vector<float> got = Pool(Pooling::kLast, p, {row});
    for (size_t i = 0; i < row.size(); ++i) {
      const double want = static_cast<double>(row[i]) / norm;
      EXPECT_NEAR(got[i], want, 1e-7 * std::abs(want)) << p;
    }
  }
}

TEST(PoolingTest, LargeAndSmallValuesStayInRange) {
  for (int32_t p : {1, 2, 3, kLargestNorm}) {
    for (const float size : {0x1p50f, 0x1p-50f}) {
      const std::vector<float> row(4096, size);
      for (const float x : Pool(Pooling::kMean, p, {row, row})) {
        EXPECT_NEAR(x, std::pow(4096.0, -1.0 / p), 1e-6) << p;
      }
    }
  }
}

TEST(PoolingTest, ZeroStaysZero) {
  for (int32_t p = kNormalizeNone; p <= kLargestNorm; ++p) {
    EXPECT_THAT(Pool(Pooling::kMean, p, {{0, 0}, {0, 0}}), ElementsAre(0, 0)) << p;
  }
}

// Sums are in binary64 by increasing position; binary32 would lose the ones.
TEST(PoolingTest, TheMeanIsSummedInBinary64) {
  EXPECT_THAT(Pool(Pooling::kMean, kNormalizeNone, {{0x1p30f}, {1}, {1}, {-0x1p30f}}),
              ElementsAre(0.5f));
  EXPECT_THAT(Pool(Pooling::kMean, kNormalizeNone, {{0x1p50f}, {0x1p-4f}, {-0x1p50f}, {0}}),
              ElementsAre(0.0f));
}

// Bits that every machine must give; a fused multiply-add or another order gives others.
TEST(PoolingTest, TheBitsArePinned) {
  std::vector<std::vector<float>> rows(5);
  uint32_t state = 1;
  for (std::vector<float>& row : rows) {
    for (int i = 0; i < 257; ++i) {
      state = state * 1664525u + 1013904223u;
      row.push_back(static_cast<float>(state >> 8) * 0x1p-22f - 2.0f);
    }
  }
  const auto hash = [&](int32_t p) {
    uint64_t h = 0xcbf29ce484222325ull;
    for (const float x : Pool(Pooling::kMean, p, rows)) {
      h = (h ^ std::bit_cast<uint32_t>(x)) * 0x100000001b3ull;
    }
    return h;
  };
  EXPECT_EQ(hash(kNormalizeNone), 0xd9a37230a072833fu);
  EXPECT_EQ(hash(kNormalizeMax), 0x205df2c42ae2f287u);
  EXPECT_EQ(hash(1), 0x06a593c1f895e898u);
  EXPECT_EQ(hash(2), 0x1a4aaa47b7f94bf7u);
  EXPECT_EQ(hash(5), 0xf91d5c98b76324c6u);
}

TEST(PoolingTest, NamesAndRangesAreChecked) {
  for (const char* name : {"none", "mean", "cls", "last"}) {
    const auto pooling = ParsePooling(name);
    ASSERT_TRUE(pooling.ok());
    EXPECT_STREQ(PoolingName(*pooling), name);
  }
  EXPECT_THAT(std::string(ParsePooling("rank").status().message()),
              HasSubstr("'rank' is no kind of pooling: none, mean, cls or last"));
  EXPECT_TRUE(CheckNormalize(-1).ok());
  EXPECT_TRUE(CheckNormalize(32).ok());
  EXPECT_FALSE(CheckNormalize(-2).ok());
  EXPECT_FALSE(CheckNormalize(33).ok());
}

TEST(PoolingTest, SimilarityIsTheCosine) {
  const std::vector<float> x = {1, 0}, y = {0, 2}, d = {3, 3}, zero = {0, 0};
  EXPECT_EQ(CosineSimilarity(x, x), 1.0);
  EXPECT_EQ(CosineSimilarity(x, y), 0.0);
  EXPECT_NEAR(CosineSimilarity(x, d), std::sqrt(0.5), 1e-15);
  EXPECT_EQ(CosineSimilarity(x, zero), 0.0);
  const std::vector<float> thirds = {0.1f, 0.7f, 0.3f, -0.9f}, more = {0.2f, 1.4f, 0.6f, -1.8f};
  EXPECT_LE(CosineSimilarity(thirds, more), 1.0);
}

}  // namespace
}  // namespace trine
