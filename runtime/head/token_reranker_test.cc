#include "runtime/head/token_reranker.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TokenReranker Make(const RerankOptions& options) {
  auto reranker = TokenReranker::Create(options);
  EXPECT_TRUE(reranker.ok()) << reranker.status();
  return *std::move(reranker);
}

TEST(TokenRerankerTest, TakesTheBestInOrder) {
  TokenReranker reranker = Make({.top = 3});
  EXPECT_THAT(reranker.Candidates(std::vector<float>{1, 5, 3, 5, 4}), ElementsAre(1, 3, 4));
  EXPECT_THAT(reranker.Candidates(std::vector<float>{2, 1}), ElementsAre(0, 1));
  const std::vector<float> holes = {std::nanf(""), -kInfinity, 0, -kInfinity};
  EXPECT_THAT(reranker.Candidates(holes), ElementsAre(2));
  const std::vector<uint32_t> allowed = {0b10101};
  EXPECT_THAT(reranker.Candidates(std::vector<float>{1, 5, 3, 5, 4}, allowed),
              ElementsAre(4, 2, 0));
}

TEST(TokenRerankerTest, AddsWhatTheHeadSays) {
  TokenReranker reranker = Make({.top = 3, .weight = 0.5});
  std::vector<float> logits = {1, 5, 3, 5, 4};
  ASSERT_TRUE(reranker.Apply(std::vector{1, 3, 4}, std::vector{-4.0, 1.0, 3.0}, logits).ok());
  EXPECT_THAT(logits, ElementsAre(-kInfinity, 3, -kInfinity, 5.5f, 5.5f));
}

TEST(TokenRerankerTest, OthersMayKeepTheirLogits) {
  TokenReranker reranker = Make({.top = 1, .weight = -1, .only_top = false});
  std::vector<float> logits = {1, 5, 3};
  ASSERT_TRUE(reranker.Apply(std::vector{1}, std::vector{3.0}, logits).ok());
  EXPECT_THAT(logits, ElementsAre(1, 2, 3));
}

TEST(TokenRerankerTest, AHeadThatIsTooSureForbidsNothing) {
  TokenReranker reranker = Make({.top = 2, .weight = 2, .limit = 4});
  std::vector<float> logits = {0, 0};
  const double infinity = std::numeric_limits<double>::infinity();
  ASSERT_TRUE(reranker.Apply(std::vector{0, 1}, std::vector{-infinity, 1e9}, logits).ok());
  EXPECT_THAT(logits, ElementsAre(-8, 8));
}

TEST(TokenRerankerTest, WithoutWeightTheOrderStays) {
  TokenReranker reranker = Make({.top = 3, .weight = 0});
  std::vector<float> logits = {0.1f, -0.3f, 7};
  const std::vector<float> before = logits;
  ASSERT_TRUE(reranker.Apply(std::vector{2, 0, 1}, std::vector{1.0, -5.0, 2.0}, logits).ok());
  EXPECT_EQ(logits, before);
  ASSERT_TRUE(reranker.Apply(std::vector{2}, std::vector{1.0}, logits).ok());
  EXPECT_EQ(logits, before) << "what is no candidate stays allowed";
  ASSERT_TRUE(reranker.Apply({}, {}, logits).ok());  // no candidates: nothing changes
  EXPECT_EQ(logits, before);
}

TEST(TokenRerankerTest, WhatIsWrongChangesNothing) {
  TokenReranker reranker = Make({});
  std::vector<float> logits = {1, 2, 3};
  const auto refusal = [&](const std::vector<int32_t>& ids, const std::vector<double>& values) {
    return std::string(reranker.Apply(ids, values, logits).message());
  };
  EXPECT_THAT(refusal({0, 1}, {1.0}), HasSubstr("2 candidates have 1 values"));
  EXPECT_THAT(refusal({0, 3}, {1, 1}), HasSubstr("candidate 3 is not in the vocabulary"));
  EXPECT_THAT(refusal({-1}, {1}), HasSubstr("candidate -1"));
  EXPECT_THAT(refusal({2, 0, 2}, {1, 1, 1}), HasSubstr("candidate 2 is named twice"));
  EXPECT_THAT(refusal({0}, {std::nan("")}), HasSubstr("NaN"));
  EXPECT_THAT(logits, ElementsAre(1, 2, 3));
}

TEST(TokenRerankerTest, OptionsHaveTheirRanges) {
  const auto refusal = [](const RerankOptions& options) {
    return std::string(TokenReranker::Create(options).status().message());
  };
  EXPECT_THAT(refusal({.top = 0}), HasSubstr("1 to 64"));
  EXPECT_THAT(refusal({.top = 65}), HasSubstr("1 to 64"));
  EXPECT_THAT(refusal({.weight = std::nan("")}), HasSubstr("weight"));
  EXPECT_THAT(refusal({.limit = 0}), HasSubstr("limit"));
  EXPECT_THAT(refusal({.limit = std::nan("")}), HasSubstr("limit"));
}

}  // namespace
}  // namespace trine
