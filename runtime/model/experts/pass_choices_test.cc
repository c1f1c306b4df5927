#include "runtime/model/experts/pass_choices.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::ElementsAre;

TEST(PassChoicesTest, CountsWhenThePassEndsAndOnce) {
  ExpertHits hits(2, 4);
  PassChoices choices;
  choices.Clear();
  choices.AddTokens(2, 0);
  choices.Add(0, std::vector<int32_t>{0, 1, 0, 3});
  choices.Add(1, std::vector<int32_t>{2, 3, 2, 1}, std::vector<int32_t>{1, -1, 1, 0});
  EXPECT_EQ(hits.choices(), 0u);
  for (int i = 0; i < 2; ++i) choices.CountIn(&hits);
  EXPECT_THAT(hits.OfLayer(0), ElementsAre(2, 1, 0, 1));
  EXPECT_THAT(hits.OfLayer(1), ElementsAre(0, 1, 2, 1));
  EXPECT_EQ(hits.choices(), 8u);
  EXPECT_EQ(hits.in_slots(), 3u);
}

TEST(PassChoicesTest, LeavesOutTokensThatHaveCounted) {
  ExpertHits hits(1, 4);
  PassChoices choices;
  choices.Clear();
  choices.AddTokens(2, 1);
  choices.AddTokens(1, 0);
  choices.AddTokens(2, 2);
  choices.AddTokens(1, 0);
  choices.Add(0, std::vector<int32_t>{0, 1, 2, 0, 0, 3}, std::vector<int32_t>{0, 0, -1, 0, 0, 0});
  choices.CountIn(&hits);
  EXPECT_THAT(hits.OfLayer(0), ElementsAre(0, 1, 1, 1));
  EXPECT_EQ(hits.in_slots(), 2u);
}

TEST(PassChoicesTest, ForgetsAPassThatFailed) {
  ExpertHits hits(1, 2);
  PassChoices choices;
  choices.Clear();
  choices.AddTokens(1, 0);
  choices.Add(0, std::vector<int32_t>{1});
  choices.Clear();
  choices.AddTokens(1, 1);
  choices.Add(0, std::vector<int32_t>{1});
  choices.CountIn(&hits);
  EXPECT_EQ(hits.choices(), 0u);
}

}  // namespace
}  // namespace trine
