#include "tools/cli/bench/bench_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> Counts(const std::vector<std::string>& texts) {
  const auto values = ParseCounts("-x", texts, 0, 100000);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *values : std::vector<int64_t>();
}

TEST(BenchPlanTest, ReadsListsAndRanges) {
  EXPECT_THAT(Counts({"512"}), ElementsAre(512));
  EXPECT_THAT(Counts({"1,2", "4"}), ElementsAre(1, 2, 4));
  EXPECT_THAT(Counts({"1-4"}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Counts({"8-30+8,7"}), ElementsAre(8, 16, 24, 7));
  EXPECT_THAT(Counts({"1-9*2"}), ElementsAre(1, 2, 4, 8));
}

TEST(BenchPlanTest, RefusesWhatIsNoCount) {
  for (const char* text : {"", "x", "1,", "-1", "+1", " 1", "1.5", "4-1", "1-4+0", "1-4*1", "0-4*2",
                           "1-", "99999999999999999999"}) {
    const auto values = ParseCounts("--n-gen", {text}, 0, 10);
    ASSERT_FALSE(values.ok()) << text;
    EXPECT_THAT(std::string(values.status().message()), HasSubstr("--n-gen: '")) << text;
  }
  EXPECT_THAT(std::string(ParseCounts("-t", {"0"}, 1, 8).status().message()),
              "-t: '0' is no whole number from 1 to 8");
  EXPECT_FALSE(ParseCounts("-t", {"0-9223372036854775807"}, 0, 8).ok());
}

TEST(BenchPlanTest, NamesTests) {
  EXPECT_EQ((BenchTest{512, 0, 0}).Name(), "pp512");
  EXPECT_EQ((BenchTest{0, 128, 4096}).Name(), "tg128 @ d4096");
  EXPECT_EQ((BenchTest{512, 128, 0}).Name(), "pp512+tg128");
}

TEST(BenchPlanTest, RunsEveryCombination) {
  BenchLists lists;
  lists.n_prompt = {"16,0"};
  lists.n_gen = {"4,8"};
  lists.prompt_and_gen = {"5,6"};
  lists.n_depth = {"0,100"};
  lists.threads = {"1,2"};
  lists.type_k = {"f16,q8_0"};
  lists.tensor_split = {"cpu:1,igpu:1", "cpu:2"};
  lists.dispatch = {"off,64", "auto"};
  const auto plan = MakeBenchPlan(lists);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> names;
  for (const BenchTest& test : plan->tests) names.push_back(test.Name());
  EXPECT_THAT(names, ElementsAre("pp16", "tg4", "tg8", "pp5+tg6", "pp16 @ d100", "tg4 @ d100",
                                 "tg8 @ d100", "pp5+tg6 @ d100"));
  EXPECT_EQ(plan->setups.size(), 24u);
  EXPECT_EQ(plan->setups[0].tensor_split, "cpu:1,igpu:1");
  EXPECT_EQ(plan->setups[1].threads, 2);
  EXPECT_EQ(plan->setups[0].dispatch, "off");
  EXPECT_EQ(plan->setups[2].dispatch, "64");
  EXPECT_EQ(plan->setups[4].dispatch, "auto");
  EXPECT_EQ(plan->setups[6].type_k, "q8_0");
  EXPECT_EQ(plan->Context(), 116);
}

TEST(BenchPlanTest, DefaultsAreOnePromptAndOneGeneration) {
  const auto plan = MakeBenchPlan({});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->tests.size(), 2u);
  EXPECT_EQ(plan->tests[0].Name(), "pp512");
  EXPECT_EQ(plan->tests[1].Name(), "tg128");
  ASSERT_EQ(plan->setups.size(), 1u);
  EXPECT_EQ(plan->setups[0].threads, 0);
  EXPECT_EQ(plan->setups[0].dispatch, "auto");
  EXPECT_EQ(plan->Context(), 512);
  BenchLists split;
  split.tensor_split = {"cpu:1,igpu:1"};
  EXPECT_EQ(MakeBenchPlan(split)->setups[0].dispatch, "prompts");
}

TEST(BenchPlanTest, RefusesWhatCannotBeMeasured) {
  const auto refused = [](const BenchLists& lists) {
    return std::string(MakeBenchPlan(lists).status().message());
  };
  BenchLists lists;
  lists.threads = {"0"};
  EXPECT_THAT(refused(lists), HasSubstr("--threads: '0' is no whole number from"));
  lists = {};
  lists.n_prompt = lists.n_gen = {"0"};
  EXPECT_THAT(refused(lists), HasSubstr("nothing is measured"));
  lists = {};
  for (const char* pair : {"512", "512,128,1", "0,5", "5,x", ",", ""}) {
    lists.prompt_and_gen = {pair};
    EXPECT_THAT(refused(lists), HasSubstr("is no pair of lengths")) << pair;
  }
  lists = {};
  lists.dispatch = {"auto,on"};
  EXPECT_THAT(refused(lists), HasSubstr("--dispatch: 'on' is none of auto, prompts, off"));
  lists = {};
  lists.type_v = {"f16,q9"};
  EXPECT_THAT(refused(lists), HasSubstr("--cache-type-v: 'q9' is none of f16"));
  lists = {};
  lists.n_depth = {"1073741824"};
  EXPECT_THAT(refused(lists), HasSubstr("is the most"));
}

}  // namespace
}  // namespace trine
