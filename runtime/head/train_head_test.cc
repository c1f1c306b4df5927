#include "runtime/head/train_head.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/head/head_file.h"
#include "runtime/head/logistic.h"
#include "runtime/head/test_head.h"

namespace trine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TrainedHead Train(const HeadData& data, const TrainOptions& options = {}) {
  auto trained = TrainHead(data, TestIdentity(std::ssize(data.examples[0].rows[0])), options);
  EXPECT_TRUE(trained.ok()) << trained.status();
  return *std::move(trained);
}

std::string Refusal(const HeadData& data, const TrainOptions& options = {}) {
  const auto trained = TrainHead(data, TestIdentity(4), options);
  EXPECT_FALSE(trained.ok());
  return std::string(trained.status().message());
}

// Like TestExamples, with rows of both branches: the better one has the higher first value.
HeadData BranchData(int n, size_t width, double signal) {
  HeadData data;
  data.kind = HeadKind::kBranch;
  Noise noise(9);
  for (int i = 0; i < n; ++i) {
    Example example;
    example.line = 2 * i + 1;
    example.group = std::to_string(i);
    for (const char* name : {"x", "y"}) {
      example.texts.push_back(name + std::to_string(i));
      std::vector<float> row;
      for (size_t k = 0; k < width; ++k) row.push_back(static_cast<float>(noise.Next()));
      example.rows.push_back(std::move(row));
    }
    example.best = 0;
    example.rows[0][0] += static_cast<float>(signal);
    Example twin = example;
    ++twin.line;
    twin.best = 1;
    std::swap(twin.texts[0], twin.texts[1]);
    std::swap(twin.rows[0], twin.rows[1]);
    data.examples.push_back(std::move(example));
    data.examples.push_back(std::move(twin));
  }
  return data;
}

TEST(TrainHeadTest, LearnsWhatIsThere) {
  const TrainedHead trained = Train(TestExamples(100, 4, 1.5));
  ASSERT_TRUE(trained.held_out.has_value());
  EXPECT_EQ(trained.held_out->examples, 40);
  EXPECT_EQ(trained.held_out->correct, 40);
  EXPECT_EQ(trained.held_out->majority, 20);
  EXPECT_EQ(trained.held_out->swaps, 20);
  EXPECT_EQ(trained.held_out->swaps_followed, 20);
  EXPECT_THAT(trained.held_out->confusion, ElementsAre(ElementsAre(20, 0), ElementsAre(0, 20)));
  EXPECT_EQ(trained.head.training.held_out_correct, 40);
  EXPECT_EQ(trained.head.training.examples, 160);
}

// Labels that are independent of the rows are memorised, and nothing is learnt.
TEST(TrainHeadTest, FindsNothingWhereNothingIs) {
  const TrainedHead trained = Train(TestExamples(500, 100, 0));
  EXPECT_GT(trained.trained.Accuracy(), 0.55);
  EXPECT_LT(trained.held_out->accuracy.low, 0.5);
  EXPECT_GT(trained.held_out->accuracy.high, 0.5);
}

TEST(TrainHeadTest, TheSameExamplesGiveTheSameBytes) {
  const HeadData data = TestExamples(50, 8, 0.3);
  EXPECT_EQ(*FormatHead(Train(data).head), *FormatHead(Train(data).head));
  TrainOptions other;
  other.seed = 1;
  EXPECT_NE(*FormatHead(Train(data).head), *FormatHead(Train(data, other).head));
}

TEST(TrainHeadTest, TheGoodLabelIsTheOneThatCounts) {
  const HeadData data = TestExamples(20, 4, 1.5);
  TrainOptions options;
  options.good = "A";
  const TrainedHead a = Train(data, options), b = Train(data);
  EXPECT_THAT(a.head.labels, ElementsAre("B", "A"));
  EXPECT_THAT(b.head.labels, ElementsAre("A", "B"));
  const std::vector<float>& row = data.examples[0].rows[0];
  EXPECT_GT(a.head.linear.LogOdds(row), 0);
  EXPECT_NEAR(a.head.linear.LogOdds(row), -b.head.linear.LogOdds(row), 1e-4);
}

TEST(TrainHeadTest, ValuesThatNeverChangeDoNoHarm) {
  HeadData data = TestExamples(20, 4, 1.5);
  for (Example& example : data.examples) example.rows[0][2] = 0.1f;
  const TrainedHead trained = Train(data);
  EXPECT_EQ(trained.head.linear.scale[2], 1);
  EXPECT_NEAR(trained.head.linear.weights[2], 0, 1e-6);
}

TEST(TrainHeadTest, BranchesAreComparedWithoutRegardToTheirOrder) {
  const HeadData data = BranchData(60, 4, 2.5);
  const TrainedHead trained = Train(data);
  EXPECT_TRUE(trained.head.labels.empty());
  EXPECT_EQ(trained.head.linear.bias, 0);
  EXPECT_EQ(trained.held_out->correct, trained.held_out->examples);
  EXPECT_EQ(trained.held_out->swaps, 12);
  EXPECT_EQ(trained.held_out->swaps_followed, 12);
  // Of three branches two are the same: they are equally probable, and all add up to 1.
  const auto& rows = data.examples[0].rows;
  const std::vector<double> p =
      AnswerProbabilities(trained.head, std::vector{rows[0], rows[1], rows[1]});
  EXPECT_EQ(p[1], p[2]);
  EXPECT_NEAR(p[0] + p[1] + p[2], 1, 1e-12);
  EXPECT_EQ(BestAnswer(p), 0u);
  const double apart = trained.head.linear.LogOdds(rows[0]) - trained.head.linear.LogOdds(rows[1]);
  EXPECT_NEAR(AnswerProbabilities(trained.head, rows)[0], Sigmoid(apart), 1e-12);
}

TEST(TrainHeadTest, RefusesWhatCannotBeTrained) {
  TrainOptions options;
  options.good = "C";
  EXPECT_THAT(Refusal(TestExamples(5, 4, 1), options), HasSubstr("no example has the label 'C'"));
  options = {};
  options.hold_out = 1;
  EXPECT_THAT(Refusal(TestExamples(5, 4, 1), options), HasSubstr("0 to less than 1"));
  options.hold_out = 0.99;
  EXPECT_THAT(Refusal(TestExamples(5, 4, 1), options), HasSubstr("left to train with"));
  EXPECT_THAT(Refusal(TestExamples(5, 3, 1)), HasSubstr("line 1: its rows have not been read"));
  options = {};
  options.l2 = -1;
  EXPECT_THAT(Refusal(TestExamples(5, 4, 1), options), HasSubstr("above 0"));
}

TEST(HeadReportTest, WilsonsIntervalIsTheKnownOne) {
  // From tables: 8 of 10 is 0.490 to 0.943, 0 of 20 is 0 to 0.161.
  EXPECT_NEAR(WilsonInterval(8, 10).low, 0.490, 5e-4);
  EXPECT_NEAR(WilsonInterval(8, 10).high, 0.943, 5e-4);
  EXPECT_EQ(WilsonInterval(0, 20).low, 0);
  EXPECT_NEAR(WilsonInterval(0, 20).high, 0.161, 5e-4);
  EXPECT_EQ(WilsonInterval(20, 20).high, 1);
  EXPECT_EQ(WilsonInterval(0, 0).high, 1);
}

TEST(HeadReportTest, DataThatIsNotTheHeadsIsRefused) {
  const Head head = TestHead();
  HeadData data = TestExamples(2, 3, 1);
  EXPECT_TRUE(CheckData(head, data).ok());
  data.examples[1].label = "good";
  EXPECT_THAT(std::string(CheckData(head, data).message()),
              HasSubstr("line 2: the head knows A and B, not 'good'"));
  EXPECT_THAT(std::string(CheckData(head, BranchData(1, 3, 1)).message()), HasSubstr("kind"));
}

// A head that always says B is right in half of the cases and never follows the branch.
TEST(HeadReportTest, APreferenceForOneAnswerShows) {
  Head head = TestHead();
  head.linear.weights = {0, 0, 0};
  head.linear.bias = 3;
  const HeadReport report =
      EvaluateHead(head, TestExamples(2, 3, 1), std::vector<size_t>{0, 1, 2, 3});
  EXPECT_EQ(report.correct, 2);
  EXPECT_EQ(report.majority, 2);
  EXPECT_EQ(report.swaps, 2);
  EXPECT_EQ(report.swaps_followed, 0);
  EXPECT_THAT(report.confusion, ElementsAre(ElementsAre(0, 2), ElementsAre(0, 2)));
  EXPECT_NEAR(report.log_loss, (LogLoss(3) + LogLoss(-3)) / 2, 1e-12);
}

}  // namespace
}  // namespace trine
