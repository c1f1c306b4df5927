#include "dispatch/cost/size_rule.h"

#include "gmock/gmock.h"

namespace trine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SizedWork Guessed(double flops, double home_ns, double away_ns) {
  return {flops, home_ns, away_ns, false};
}

SizedWork Measured(double home_ns, double away_ns) { return {1e5, home_ns, away_ns, true}; }

TEST(SizeRuleTest, UnmeasuredWorkGoesByItsSize) {
  const SizeRule rule;
  // The times say the opposite, but must be ignored.
  const SizeDecision small = Decide(rule, 1, Guessed(0.9e6, 1e9, 1));
  EXPECT_FALSE(small.away);
  EXPECT_THAT(small.reason, HasSubstr("under 1 MFLOP"));
  const SizeDecision large = Decide(rule, 512, Guessed(10.1e9, 1, 1e9));
  EXPECT_TRUE(large.away);
  EXPECT_THAT(large.reason, HasSubstr("over 10 GFLOP"));
}

TEST(SizeRuleTest, BetweenTheTwoGuessesDecide) {
  const SizeRule rule;
  EXPECT_TRUE(Decide(rule, 64, Guessed(1e9, 2e6, 1e6)).away);
  EXPECT_FALSE(Decide(rule, 64, Guessed(1e9, 1e6, 2e6)).away);
  EXPECT_THAT(Decide(rule, 64, Guessed(1e9, 1e6, 2e6)).reason, HasSubstr("guessed"));
}

TEST(SizeRuleTest, MeasuredTimesDecideAtAnySize) {
  const SizeRule rule;
  EXPECT_TRUE(Decide(rule, 1, Measured(2e6, 1e6)).away);  // 0.1 MFLOP
  EXPECT_FALSE(Decide(rule, 512, {1e12, 1e6, 2e6, true}).away);
  EXPECT_THAT(Decide(rule, 1, Measured(2e6, 1e6)).reason,
              HasSubstr("2 ms where its weights are, 1 ms elsewhere, measured"));
}

TEST(SizeRuleTest, LittleIsNotWorthIt) {
  const SizeRule rule;
  EXPECT_FALSE(Decide(rule, 1, Measured(1.09e6, 1e6)).away);
  EXPECT_TRUE(Decide(rule, 1, Measured(1.11e6, 1e6)).away);
}

TEST(SizeRuleTest, TokensThatAreAskedForComeFirst) {
  SizeRule rule;
  rule.from_tokens = 48;
  EXPECT_FALSE(Decide(rule, 47, Measured(2e6, 1e6)).away);
  EXPECT_TRUE(Decide(rule, 48, Measured(1e6, 2e6)).away);
  EXPECT_THAT(TokenClasses(rule, 100), ElementsAre(1, 2, 4, 8, 16, 32, 48, 64));
  EXPECT_THAT(TokenClasses(rule, 47), ElementsAre(1, 2, 4, 8, 16, 32));
}

TEST(SizeRuleTest, SmallerPassesThanAllowedStayAtHome) {
  SizeRule rule;
  rule.at_least = 5;
  const SizeDecision few = Decide(rule, 4, Measured(2e6, 1e6));
  EXPECT_FALSE(few.away);
  EXPECT_THAT(few.reason, HasSubstr("under 5 tokens"));
  EXPECT_TRUE(Decide(rule, 5, Measured(2e6, 1e6)).away);
  rule.from_tokens = 3;
  EXPECT_FALSE(Decide(rule, 4, Measured(2e6, 1e6)).away);
  EXPECT_THAT(TokenClasses(rule, 16), ElementsAre(1, 2, 3, 4, 5, 8, 16));
}

TEST(SizeRuleTest, ARouteIsNotKeptBelowTheLeastTokens) {
  const std::vector<int64_t> classes = {1, 2, 4, 8, 9, 16};
  const std::vector<size_t> routes = {0, 0, 0, 0, 1, 1};
  RouteSwitch at_any_size(classes, routes, 1.25);
  EXPECT_EQ(at_any_size.Choose(16), 1u);
  EXPECT_EQ(at_any_size.Choose(8), 1u) << "it is kept: 8 is near 9";
  RouteSwitch from_nine(classes, routes, 1.25, 9);
  EXPECT_EQ(from_nine.Choose(16), 1u);
  EXPECT_EQ(from_nine.Choose(8), 0u);
  EXPECT_EQ(from_nine.Choose(9), 1u);
}

TEST(SizeRuleTest, ClassesEndWithTheLargestPass) {
  EXPECT_THAT(TokenClasses({}, 1), ElementsAre(1));
  EXPECT_THAT(TokenClasses({}, 9), ElementsAre(1, 2, 4, 8));
}

TEST(SizeRuleTest, ModesAreRead) {
  EXPECT_TRUE(ParseDispatch("auto")->on);
  EXPECT_EQ(ParseDispatch("auto")->from_tokens, 0);
  EXPECT_EQ(ParseDispatch("auto")->prompts_only, false);
  EXPECT_EQ(ParseDispatch("prompts")->prompts_only, true);
  EXPECT_TRUE(ParseDispatch("prompts")->on);
  EXPECT_EQ(DispatchMode().prompts_only, std::nullopt);
  EXPECT_FALSE(ParseDispatch("off")->on);
  EXPECT_TRUE(ParseDispatch("64")->on);
  EXPECT_EQ(ParseDispatch("64")->from_tokens, 64);
  for (const char* text : {"", "0", "-1", "+5", " 5", "1e3", "on", "99999999999999999999"}) {
    EXPECT_THAT(std::string(ParseDispatch(text).status().message()),
                HasSubstr("is none of auto, prompts, off and a number of tokens"))
        << text;
  }
}

TEST(RouteSwitchTest, WithoutAnythingItIsTheFirst) {
  RouteSwitch routes;
  EXPECT_EQ(routes.Choose(1), 0u);
  EXPECT_EQ(routes.Choose(4096), 0u);
}

TEST(RouteSwitchTest, KeepsItsRouteNearABorder) {
  RouteSwitch routes({1, 2, 4, 8, 16, 32}, {0, 0, 0, 0, 0, 1}, 1.25);
  EXPECT_EQ(routes.Choose(31), 0u);
  EXPECT_EQ(routes.Choose(33), 0u);  // keeps the route: 33 / 1.25 is below the border
  EXPECT_EQ(routes.Choose(40), 1u);
  EXPECT_EQ(routes.Choose(31), 1u);
  EXPECT_EQ(routes.Choose(26), 1u);
  EXPECT_EQ(routes.Choose(25), 0u);
  EXPECT_EQ(routes.Choose(512), 1u);
  EXPECT_EQ(routes.Choose(1), 0u);
}

TEST(RouteSwitchTest, WithoutABandTheBorderIsSharp) {
  RouteSwitch routes({1, 3}, {0, 1}, 1);
  EXPECT_EQ(routes.Choose(2), 0u);
  EXPECT_EQ(routes.Choose(3), 1u);
  EXPECT_EQ(routes.Choose(2), 0u);
}

TEST(RouteSwitchTest, OneTokenIsNotHeldByTheBand) {
  RouteSwitch routes({1, 2}, {0, 1}, 4);
  EXPECT_EQ(routes.Choose(8), 1u);
  EXPECT_EQ(routes.Choose(2), 1u);
  EXPECT_EQ(routes.Choose(1), 0u);
  RouteSwitch others({1, 2, 4, 8, 16, 32}, {0, 0, 0, 0, 0, 1}, 1.25);
  EXPECT_EQ(others.Choose(40), 1u);
  EXPECT_EQ(others.Choose(1), 0u);
  EXPECT_EQ(others.Choose(30), 1u) << "as the last one that was near the border";
}

TEST(RouteSwitchTest, TheSamePassesTakeTheSameRoutes) {
  const std::vector<int64_t> passes = {1, 40, 30, 33, 27, 26, 1, 33, 24, 64, 2};
  std::vector<size_t> first, second;
  for (std::vector<size_t>* taken : {&first, &second}) {
    RouteSwitch routes({1, 2, 4, 8, 16, 32}, {0, 0, 0, 1, 1, 2}, 1.25);
    for (const int64_t tokens : passes) taken->push_back(routes.Choose(tokens));
  }
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace trine
