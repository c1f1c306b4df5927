#include "runtime/head/logistic.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/head/test_head.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

LogisticFit Fit(const std::vector<double>& rows, size_t width, const std::vector<uint8_t>& positive,
                const LogisticOptions& options = {}) {
  auto fit = FitLogistic(rows, width, positive, options);
  EXPECT_TRUE(fit.ok()) << fit.status();
  return fit.ok() ? *std::move(fit) : LogisticFit{};
}

constexpr double kPinnedWeight = 0x1.3d5fbde021a94p+1;  // of GivesTheSameBitsEachTime

double LogOdds(const LogisticFit& fit, const double* row) {
  double sum = fit.bias;
  for (size_t i = 0; i < fit.weights.size(); ++i) sum += fit.weights[i] * row[i];
  return sum;
}

TEST(LogisticTest, ScalarFunctionsAreWhatTheyAreCalled) {
  for (const double x : {-800.0, -30.0, -1.5, 0.0, 0.25, 2.0, 40.0, 1e9}) {
    EXPECT_NEAR(Sigmoid(x), 1 / (1 + std::exp(-x)), 1e-15) << x;
    if (std::abs(x) < 700) {
      EXPECT_NEAR(LogLoss(x), std::log1p(std::exp(-x)), 1e-13) << x;
    }
  }
  EXPECT_EQ(LogLoss(-1e9), 1e9);
}

TEST(LogisticTest, TheBiasAloneIsTheShareOfTheClass) {
  const LogisticFit fit = Fit({0, 0, 0, 0}, 1, {1, 1, 1, 0});
  EXPECT_NEAR(fit.bias, std::log(3.0), 1e-6);
  EXPECT_EQ(fit.weights[0], 0);
}

// One weight, two rows at +-1: the minimum of log(1 + exp(-w)) + l2 w^2 / 2 solves
// l2 w = 1 / (1 + exp(w)).
TEST(LogisticTest, FindsTheMinimumOfAKnownProblem) {
  LogisticOptions options;
  options.l2 = 0.05;
  const LogisticFit fit = Fit({1, -1}, 1, {1, 0}, options);
  EXPECT_NEAR(0.05 * fit.weights[0], 1 / (1 + std::exp(fit.weights[0])), 1e-7);
  EXPECT_NEAR(fit.bias, 0, 1e-6);
  EXPECT_LE(fit.gradient, 1e-7);
  EXPECT_LT(fit.iterations, 20);
}

TEST(LogisticTest, SeparatesWhatCanBeSeparatedAndStaysFinite) {
  Noise noise(3);
  std::vector<double> rows;
  std::vector<uint8_t> positive;
  for (int i = 0; i < 200; ++i) {
    const double x = noise.Next(), y = noise.Next(), z = noise.Next();
    const double side = 2 * x - y + 0.3;
    if (std::abs(side) < 0.1) continue;
    rows.insert(rows.end(), {x, y, z});
    positive.push_back(side > 0);
  }
  for (const double l2 : {1e-6, 1e-3, 1.0}) {
    LogisticOptions options;
    options.l2 = l2;
    const LogisticFit fit = Fit(rows, 3, positive, options);
    int wrong = 0;
    for (size_t i = 0; i < positive.size(); ++i) {
      wrong += (LogOdds(fit, &rows[3 * i]) > 0) != (positive[i] != 0);
    }
    if (l2 < 1e-4) {
      EXPECT_EQ(wrong, 0);
    }
    EXPECT_LT(std::abs(fit.weights[0]), 1e4);
    EXPECT_LT(fit.iterations, 60) << l2;
  }
}

TEST(LogisticTest, SaysNothingWhereThereIsNothingToSay) {
  // Each row once with each class.
  const LogisticFit fit = Fit({1, 2, 1, 2, -3, 4, -3, 4}, 2, {0, 1, 0, 1});
  EXPECT_NEAR(LogOdds(fit, std::vector<double>{1, 2}.data()), 0, 1e-5);
  EXPECT_NEAR(fit.loss, std::log(2.0), 1e-9);
}

TEST(LogisticTest, WithoutABiasTheLineGoesThroughNothing) {
  LogisticOptions options;
  options.bias = false;
  const LogisticFit fit = Fit({1, 2, 3}, 1, {1, 1, 1}, options);
  EXPECT_EQ(fit.bias, 0);
  EXPECT_GT(fit.weights[0], 0);
}

TEST(LogisticTest, GivesTheSameBitsEachTime) {
  const HeadData data = TestExamples(60, 20, 0.5);
  std::vector<double> rows;
  std::vector<uint8_t> positive;
  for (const Example& example : data.examples) {
    rows.insert(rows.end(), example.rows[0].begin(), example.rows[0].end());
    positive.push_back(example.label == "B");
  }
  const LogisticFit first = Fit(rows, 20, positive), second = Fit(rows, 20, positive);
  EXPECT_EQ(first.weights, second.weights);
  EXPECT_EQ(first.bias, second.bias);
  // Pinned: every compiler, processor and libm must give the same.
  EXPECT_EQ(first.weights[0], kPinnedWeight) << std::hexfloat << first.weights[0];
}

TEST(LogisticTest, RefusesWhatIsNoProblem) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<uint8_t> two = {0, 1};
  const auto refuse = [&](const std::vector<double>& rows, size_t width,
                          const std::vector<uint8_t>& positive, double l2) {
    LogisticOptions options;
    options.l2 = l2;
    return std::string(FitLogistic(rows, width, positive, options).status().message());
  };
  EXPECT_THAT(refuse({1, 2, 3}, 2, two, 1), HasSubstr("3 values are not 2 rows of 2"));
  EXPECT_THAT(refuse({}, 0, two, 1), HasSubstr("rows of 0"));
  EXPECT_THAT(refuse({}, 1, {}, 1), HasSubstr("one at least"));
  EXPECT_THAT(refuse({1, 2}, 1, two, 0), HasSubstr("above 0"));
  EXPECT_THAT(refuse({1, 2}, 1, two, nan), HasSubstr("above 0"));
  EXPECT_THAT(refuse({1, nan}, 1, two, 1), HasSubstr("not finite"));
  LogisticOptions impatient;
  impatient.max_iterations = 1;
  const auto cut =
      FitLogistic(std::vector<double>{1, -1, 2}, 1, std::vector<uint8_t>{1, 0, 0}, impatient);
  EXPECT_TRUE(absl::IsInternal(cut.status()));
}

}  // namespace
}  // namespace trine
