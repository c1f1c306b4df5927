#include "runtime/head/head_data.h"

#include <algorithm>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/head/test_head.h"

namespace trine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Refusal(const std::string& text) {
  const auto data = ParseHeadData(text);
  EXPECT_TRUE(absl::IsInvalidArgument(data.status())) << text;
  return std::string(data.status().message());
}

TEST(HeadDataTest, ReadsBothKinds) {
  const auto labels = ParseHeadData(
      "{\"prompt\": \"p\", \"label\": \"A\", \"group\": \"g\"}\r\n\n"
      "{\"label\": \"B\", \"prompt\": \"q\"}");
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_EQ(labels->kind, HeadKind::kLabel);
  ASSERT_EQ(labels->examples.size(), 2u);
  EXPECT_EQ(labels->examples[0].group, "g");
  EXPECT_EQ(labels->examples[1].line, 3);
  EXPECT_THAT(labels->examples[1].texts, ElementsAre("q"));
  EXPECT_THAT(*TwoLabels(*labels), ElementsAre("A", "B"));

  const auto branches =
      ParseHeadData("{\"prompt\": \"To go \", \"branches\": [\"x\", \"y\", \"z\"], \"best\": 2}\n");
  ASSERT_TRUE(branches.ok()) << branches.status();
  EXPECT_EQ(branches->kind, HeadKind::kBranch);
  EXPECT_THAT(branches->examples[0].texts, ElementsAre("To go x", "To go y", "To go z"));
  EXPECT_EQ(branches->examples[0].best, 2u);
}

TEST(HeadDataTest, WrongLinesAreNamed) {
  const std::string good = "{\"prompt\": \"p\", \"label\": \"A\"}\n";
  EXPECT_THAT(Refusal(""), HasSubstr("no examples"));
  EXPECT_THAT(Refusal("\n \n"), HasSubstr("no examples"));
  EXPECT_THAT(Refusal(good + "\n{]"), HasSubstr("line 3: it is no JSON object"));
  EXPECT_THAT(Refusal(good + "[1]"), HasSubstr("line 2: it is no JSON object"));
  EXPECT_THAT(Refusal(good + "{\"prompt\": \"\xff\", \"label\": \"A\"}"), HasSubstr("line 2"));
  EXPECT_THAT(Refusal(good + "{\"label\": \"A\"}"), HasSubstr("line 2: \"prompt\" is missing"));
  EXPECT_THAT(Refusal(good + "{\"prompt\": \"p\"}"), HasSubstr("line 2: \"label\" is missing"));
  EXPECT_THAT(Refusal("{\"prompt\": \"\", \"label\": \"A\"}"),
              HasSubstr("line 1: a text is empty"));
  EXPECT_THAT(Refusal("{\"prompt\": \"p\", \"label\": \"\"}"), HasSubstr("\"label\" is empty"));
  EXPECT_THAT(Refusal("{\"prompt\": \"p\", \"label\": 1}"), HasSubstr("\"label\" is no text"));
  EXPECT_THAT(Refusal("{\"prompt\": \"p\", \"label\": \"A\", \"grup\": \"g\"}"),
              HasSubstr("'grup' is no member"));
  EXPECT_THAT(Refusal("{\"prompt\": \"p\", \"label\": \"A\", \"best\": 0}"),
              HasSubstr("without \"branches\""));
  EXPECT_THAT(Refusal(good + "{\"branches\": [\"a\", \"b\"], \"best\": 0}"),
              HasSubstr("line 2: it is of another kind"));
  for (const char* branches : {"[\"a\"]", "\"ab\"", "{}"}) {
    EXPECT_THAT(Refusal(std::string("{\"best\": 0, \"branches\": ") + branches + "}"),
                HasSubstr("no list of 2 to 64"));
  }
  for (const char* best : {"2", "-1", "0.5", "\"0\""}) {
    EXPECT_THAT(Refusal(std::string("{\"branches\": [\"a\", \"b\"], \"best\": ") + best + "}"),
                HasSubstr("no number from 0 to 1"));
  }
  EXPECT_THAT(Refusal("{\"branches\": [\"a\", 1], \"best\": 0}"), HasSubstr("one that is no text"));
  EXPECT_THAT(Refusal("{\"branches\": [\"a\", \"b\"]}"), HasSubstr("\"best\" is missing"));
}

TEST(HeadDataTest, LabelsAreTwo) {
  const auto one = ParseHeadData("{\"prompt\": \"p\", \"label\": \"A\"}");
  EXPECT_THAT(std::string(TwoLabels(*one).status().message()), HasSubstr("nothing to tell apart"));
  const auto three = ParseHeadData(
      "{\"prompt\": \"p\", \"label\": \"A\"}\n{\"prompt\": \"p\", \"label\": \"B\"}\n"
      "{\"prompt\": \"p\", \"label\": \"C\"}");
  EXPECT_THAT(std::string(TwoLabels(*three).status().message()),
              HasSubstr("line 3: 'C' is a third label"));
}

TEST(HeadDataTest, GroupsAreNotDivided) {
  HeadData data = TestExamples(50, 1, 0);
  std::set<std::vector<size_t>> seen;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Division division = Divide(data, 0.2, seed);
    EXPECT_EQ(division.held_out.size(), 20u);
    EXPECT_EQ(division.train.size(), 80u);
    std::set<std::string> held;
    for (const size_t i : division.held_out) held.insert(data.examples[i].group);
    for (const size_t i : division.train) EXPECT_FALSE(held.contains(data.examples[i].group));
    seen.insert(division.held_out);
  }
  EXPECT_EQ(seen.size(), 5u);
  EXPECT_TRUE(Divide(data, 0, 1).held_out.empty());
}

TEST(HeadDataTest, TheOrderOfLinesDecidesNothing) {
  HeadData data = TestExamples(20, 1, 0);
  for (size_t i = 0; i < 10; ++i) data.examples[i].group.clear();
  const auto names = [](const HeadData& d) {
    std::set<std::string> held;
    for (const size_t i : Divide(d, 0.3, 7).held_out) held.insert(d.examples[i].texts[0]);
    return held;
  };
  const std::set<std::string> before = names(data);
  std::reverse(data.examples.begin(), data.examples.end());
  EXPECT_EQ(names(data), before);
}

}  // namespace
}  // namespace trine
