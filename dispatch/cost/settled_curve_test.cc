#include "dispatch/cost/settled_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace trine {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::vector<double> kSizes = {1, 4, 16, 64, 256};
// Reads weights from memory at first, then takes as long as it multiplies.
const std::vector<double> kTruth = {0.2, 0.2, 0.8, 3.2, 12.8};

// A device whose times are scripted: the truth, times `factor(point, call)`.
class ScriptedDevice {
 public:
  using Factor = std::function<double(size_t point, int call)>;
  explicit ScriptedDevice(Factor factor) : factor_(std::move(factor)) {}

  SettledCurve Settle(const CurveCare& care = {}) {
    auto settled = SettleCurve(
        kSizes,
        [this](size_t point) -> absl::StatusOr<double> {
          return kTruth[point] * factor_(point, calls_[point]++);
        },
        care);
    EXPECT_TRUE(settled.ok()) << settled.status();
    return settled.ok() ? *std::move(settled) : SettledCurve();
  }
  const std::vector<int>& calls() const { return calls_; }

 private:
  const Factor factor_;
  std::vector<int> calls_ = std::vector<int>(kSizes.size(), 0);
};

bool NeverFalls(const CostCurve& curve) {
  const auto& points = curve.points();
  return std::is_sorted(points.begin(), points.end(),
                        [](const auto& a, const auto& b) { return a.cost < b.cost; });
}

TEST(SettledCurve, KeepsWhatIsPlausible) {
  ScriptedDevice device([](size_t, int) { return 1; });
  const SettledCurve settled = device.Settle();
  ASSERT_THAT(settled.curve.points(), SizeIs(kSizes.size()));
  for (size_t i = 0; i < kSizes.size(); ++i) {
    EXPECT_EQ(settled.curve.At(kSizes[i]), kTruth[i]) << "to the last bit";
  }
  EXPECT_THAT(settled.doubts, IsEmpty());
  EXPECT_THAT(settled.spreads, ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(device.calls(), Each(5)) << "once in each round";
}

// One disturbed round of five does not matter, and needs no doubt.
TEST(SettledCurve, TakesTheMedianOfItsRounds) {
  ScriptedDevice device([](size_t, int call) { return call == 2 ? 1.0 / 35 : 1; });
  const SettledCurve settled = device.Settle();
  EXPECT_EQ(settled.curve.At(16), 0.8);
  EXPECT_THAT(settled.doubts, IsEmpty());
  EXPECT_THAT(device.calls(), Each(5));
}

TEST(SettledCurve, SaysHowFarRoundsWereApart) {
  ScriptedDevice device([](size_t point, int call) { return point == 3 ? 1 + 0.1 * call : 1; });
  const SettledCurve settled = device.Settle();
  ASSERT_THAT(settled.spreads, SizeIs(kSizes.size()));
  EXPECT_EQ(settled.spreads[0], 0);
  EXPECT_NEAR(settled.spreads[3], 0.2 / 1.2, 1e-9);
}

TEST(SettledCurve, AnOutlierIsMeasuredAgainAndNeverKept) {
  ScriptedDevice device([](size_t point, int call) {
    return point == 2 && call < 5 ? 1.0 / 35 : 1;  // 16 tokens, while the machine was busy
  });
  const SettledCurve settled = device.Settle();
  EXPECT_EQ(settled.curve.At(16), 0.8);
  EXPECT_EQ(settled.curve.At(4), 0.2);
  EXPECT_GE(device.calls()[2], 10);
  EXPECT_EQ(device.calls()[0], 5) << "the point was not measured again";
  ASSERT_THAT(settled.doubts, SizeIs(1));
  EXPECT_EQ(settled.doubts[0], "16 tokens: 0.0229 ns at first: measured again, 0.8 ns is kept");
}

// The median of rounds that are far apart says little, even where it is plausible.
TEST(SettledCurve, UnevenRoundsAreMeasuredAgain) {
  ScriptedDevice device([](size_t point, int call) {
    constexpr double kUneven[] = {0.6, 1.5, 1, 0.7, 1.4};
    return point == 3 && call < 5 ? kUneven[call] : 1;
  });
  const SettledCurve settled = device.Settle();
  EXPECT_EQ(device.calls()[3], 10);
  EXPECT_EQ(device.calls()[2], 5);
  EXPECT_EQ(settled.curve.At(64), 3.2);
  EXPECT_EQ(settled.spreads[3], 0);
}

// Any point may be wrong, too fast or too slow, and stay wrong.
TEST(SettledCurve, APointThatStaysWrongIsNeverKept) {
  for (size_t wrong = 0; wrong < kSizes.size(); ++wrong) {
    for (const double factor : {1.0 / 35, 35.0}) {
      SCOPED_TRACE(absl::StrCat(kSizes[wrong], " tokens, times ", factor));
      ScriptedDevice device([&](size_t point, int) { return point == wrong ? factor : 1; });
      const SettledCurve settled = device.Settle();
      EXPECT_TRUE(NeverFalls(settled.curve));
      ASSERT_THAT(settled.curve.points(), SizeIs(kSizes.size() - 1));
      EXPECT_THAT(settled.spreads, SizeIs(kSizes.size() - 1));
      for (size_t i = 0; i < kSizes.size(); ++i) {
        const double apart = std::abs(std::log2(settled.curve.At(kSizes[i]) / kTruth[i]));
        EXPECT_LE(apart, i == wrong ? 1.01 : 1e-9) << kSizes[i] << " tokens";
      }
      EXPECT_EQ(device.calls()[wrong], 5 * 4) << "it was measured again three times";
      ASSERT_THAT(settled.doubts, SizeIs(1));
      EXPECT_THAT(settled.doubts[0], HasSubstr("contradicts the other points"));
      EXPECT_THAT(settled.doubts[0], HasSubstr("in 4 measurements"));
    }
  }
}

// A small fall is no outlier: both points say something, and neither is right.
TEST(SettledCurve, PointsThatFallALittleAreJoined) {
  ScriptedDevice device([](size_t point, int) { return point == 1 ? 1 / 1.44 : 1; });
  const SettledCurve settled = device.Settle();
  EXPECT_NEAR(settled.curve.At(1), 0.2 / 1.2, 1e-9);
  EXPECT_NEAR(settled.curve.At(4), 0.2 / 1.2, 1e-9);
  EXPECT_EQ(settled.curve.At(16), 0.8);
  ASSERT_THAT(settled.doubts, SizeIs(2));
  EXPECT_THAT(settled.doubts[1], HasSubstr("more tokens never take less time"));
}

TEST(SettledCurve, NoiseNeverMakesItFall) {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    std::lognormal_distribution<double> noise(0, i % 10 * 0.3);
    ScriptedDevice device([&](size_t, int) { return noise(random); });
    const SettledCurve settled = device.Settle();
    EXPECT_FALSE(settled.curve.empty());
    EXPECT_TRUE(NeverFalls(settled.curve));
    EXPECT_LE(*std::max_element(device.calls().begin(), device.calls().end()), 20);
  }
}

TEST(SettledCurve, StrangeNumbersDoNoHarm) {
  for (const double strange : {0.0, -5.0, std::nan(""), HUGE_VAL}) {
    ScriptedDevice device([&](size_t point, int) { return point == 3 ? strange : 1; });
    const SettledCurve settled = device.Settle();
    EXPECT_EQ(settled.curve.At(16), 0.8);
    EXPECT_NEAR(settled.curve.At(64), 3.2, 1e-6);
  }
}

TEST(SettledCurve, EndsWhenAPointTakesLongEnough) {
  ScriptedDevice device([](size_t, int) { return 1; });
  CurveCare care;
  care.enough = 0.5;
  EXPECT_THAT(device.Settle(care).curve.points(), SizeIs(3));
  EXPECT_THAT(device.calls(), ElementsAre(5, 5, 5, 0, 0));
}

TEST(SettledCurve, AnErrorEndsIt) {
  const auto settled = SettleCurve(kSizes,
                                   [](size_t point) -> absl::StatusOr<double> {
                                     if (point < 2) return 1.0;
                                     return absl::UnavailableError("the device is lost");
                                   },
                                   {});
  EXPECT_EQ(settled.status().message(), "the device is lost");
}

TEST(SettledCurve, TypesThatBeatAllOthersAreFound) {
  const ReadCost q4{0.05, 0.5625}, q8{0.1, 1.0625}, f32{0.4, 4};
  EXPECT_FALSE(IsTooFastForItsPeers(q4, {q8, f32})) << "it has fewer bytes to read";
  EXPECT_FALSE(IsTooFastForItsPeers(f32, {q4, q8}));
  EXPECT_TRUE(IsTooFastForItsPeers({0.2 / 35, 2}, {q4, q8, f32}));
  EXPECT_FALSE(IsTooFastForItsPeers({0.2 / 35, 2}, {q8})) << "one other type may be slow itself";
  // Decoding q2_k takes longer than reading it; f32 may read more bytes than it in a second.
  EXPECT_FALSE(IsTooFastForItsPeers({0.4, 4}, {{0.2, 0.33}, {0.25, 0.43}}));
}

}  // namespace
}  // namespace trine
