#include "dispatch/cost/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace trine {
namespace {

using ::testing::ElementsAre;

// Runs that take scripted times by a clock of their own. The last time goes on for ever.
class ScriptedRuns {
 public:
  explicit ScriptedRuns(std::vector<double> times) : times_(std::move(times)) {}

  absl::StatusOr<double> Round(double budget_ns) {
    return TimeRound([this] { return Run(); }, [this] { return now_; }, budget_ns);
  }
  size_t runs() const { return runs_; }

 private:
  absl::Status Run() {
    now_ += times_[std::min(runs_, times_.size() - 1)];
    ++runs_;
    return absl::OkStatus();
  }

  const std::vector<double> times_;
  size_t runs_ = 0;
  double now_ = 1e9;
};

TEST(Rounds, AMedianAndTheMiddleHalf) {
  const RepeatedCost odd = Summarise({5, 1, 100, 4, 3});
  EXPECT_DOUBLE_EQ(odd.median, 4);
  EXPECT_DOUBLE_EQ(odd.spread, 0.5);  // from 3 to 5
  EXPECT_DOUBLE_EQ(Summarise({2, 4}).median, 3);
  EXPECT_DOUBLE_EQ(Summarise({7}).spread, 0);
  EXPECT_DOUBLE_EQ(Summarise({}).median, 0);
}

TEST(Rounds, EachRoundMeasuresEverythingOnce) {
  std::vector<int> order;
  const auto thing = [&](int number) {
    return [&order, number]() -> absl::StatusOr<double> {
      order.push_back(number);
      return number;
    };
  };
  const auto rounds = MeasureInRounds(2, {thing(7), thing(8)});
  ASSERT_TRUE(rounds.ok());
  EXPECT_THAT(order, ElementsAre(7, 8, 7, 8));
  EXPECT_THAT(*rounds, ElementsAre(ElementsAre(7, 8), ElementsAre(7, 8)));
}

TEST(Rounds, AnErrorEndsThem) {
  int calls = 0;
  const auto rounds = MeasureInRounds(5, {[&]() -> absl::StatusOr<double> {
                                        if (++calls < 3) return 1.0;
                                        return absl::CancelledError("enough");
                                      }});
  EXPECT_EQ(rounds.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(calls, 3);
}

// A machine that becomes three times as fast between two rounds does not get into a difference.
TEST(Rounds, DifferencesAreTakenWithinARound) {
  const Rounds rounds = {{30, 33}, {30, 33}, {10, 11}};
  const RepeatedCost cost =
      SummariseRounds(rounds, [](const std::vector<double>& ns) { return ns[1] - ns[0]; });
  EXPECT_DOUBLE_EQ(cost.median, 3);
}

TEST(Rounds, TheFirstRunIsNotCounted) {
  ScriptedRuns runs({90, 10, 10, 10});
  EXPECT_DOUBLE_EQ(*runs.Round(100), 10);
  EXPECT_EQ(runs.runs(), 11u) << "ten runs fill the budget";
}

TEST(Rounds, ALongRunIsTheOnlyOne) {
  ScriptedRuns runs({500, 1});
  EXPECT_DOUBLE_EQ(*runs.Round(100), 500);
  EXPECT_EQ(runs.runs(), 1u);
}

TEST(Rounds, ShortRunsAreNotRepeatedForEver) {
  ScriptedRuns runs({0});
  EXPECT_DOUBLE_EQ(*runs.Round(100), 0);
  EXPECT_LT(runs.runs(), 100u);
}

TEST(Rounds, AFailedRunFails) {
  const auto failed =
      TimeRound([] { return absl::UnavailableError("lost"); }, [] { return 0.0; }, 100);
  EXPECT_EQ(failed.status().message(), "lost");
}

}  // namespace
}  // namespace trine
