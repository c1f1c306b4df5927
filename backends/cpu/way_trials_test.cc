#include "backends/cpu/way_trials.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

namespace trine::cpu {
namespace {

using cpu_kernels::Way;

// Takes all turns. `time` gives a turn's time from its way and how often that way came before.
template <typename Time>
void TakeAllTurns(WayTrial* trial, Time time) {
  std::map<Way, uint32_t> seen;
  for (uint32_t i = 0; i < 2 * WayTrial::kSamples; ++i) {
    ASSERT_EQ(trial->chosen(), Way::kUsual);
    const WayTrial::Turn turn = trial->Next();
    ASSERT_TRUE(turn.timed());
    ASSERT_NE(turn.way, Way::kUsual);
    trial->Tell(turn, time(turn.way, seen[turn.way]++));
  }
  EXPECT_EQ(seen[Way::kDirect], WayTrial::kSamples);
  EXPECT_EQ(seen[Way::kTiles], WayTrial::kSamples);
}

TEST(WayTrialTest, KeepsTheFasterWay) {
  for (const Way faster : {Way::kDirect, Way::kTiles}) {
    WayTrial trial;
    TakeAllTurns(&trial, [&](Way way, uint32_t) { return way == faster ? 100u : 101u; });
    EXPECT_EQ(trial.chosen(), faster);
    for (int i = 0; i < 3; ++i) {
      const WayTrial::Turn turn = trial.Next();
      EXPECT_EQ(turn.way, faster);
      EXPECT_FALSE(turn.timed());
    }
  }
}

TEST(WayTrialTest, SomeTimesThatAreFarOffDoNotCount) {
  WayTrial trial;
  TakeAllTurns(&trial, [](Way way, uint32_t before) -> uint64_t {
    if (way == Way::kDirect) return before < WayTrial::kSamples / 4 ? 1 : 200;
    return before < WayTrial::kSamples / 2 ? 1'000'000 : 100;
  });
  EXPECT_EQ(trial.chosen(), Way::kTiles);
}

TEST(WayTrialTest, WorkersWhoTakeTurnsTryBothWays) {
  for (const uint32_t workers : {2u, 3u, 4u, 5u, 6u, 8u}) {
    WayTrial trial;
    std::vector<std::map<Way, int>> seen(workers);
    for (uint32_t i = 0; i < 2 * WayTrial::kSamples; ++i) ++seen[i % workers][trial.Next().way];
    for (const auto& worker : seen) EXPECT_EQ(worker.size(), 2u) << workers;
  }
}

// Half of the parts run on slow cores, and the faster way gets more of those.
TEST(WayTrialTest, SlowCoresDoNotDecide) {
  for (const Way faster : {Way::kDirect, Way::kTiles}) {
    WayTrial trial;
    TakeAllTurns(&trial, [&](Way way, uint32_t before) {
      const bool is_slow = way == faster ? before % 3 != 0 : before % 3 == 0;
      return (way == faster ? 100u : 120u) * (is_slow ? 2 : 1);
    });
    EXPECT_EQ(trial.chosen(), faster);
  }
}

TEST(WayTrialTest, WhileATurnIsOutOthersGoTheUsualWay) {
  WayTrial trial;
  std::vector<WayTrial::Turn> turns;
  for (uint32_t i = 0; i < 2 * WayTrial::kSamples; ++i) turns.push_back(trial.Next());
  const WayTrial::Turn last = turns.back();
  turns.pop_back();
  for (const WayTrial::Turn& turn : turns) trial.Tell(turn, turn.way == Way::kTiles ? 1 : 2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(trial.Next().way, Way::kUsual);
    EXPECT_FALSE(trial.Next().timed());
  }
  trial.Tell(last, 1);
  EXPECT_EQ(trial.chosen(), Way::kTiles);
}

TEST(WayTrialTest, ManyThreadsChooseOnce) {
  for (int round = 0; round < 200; ++round) {
    WayTrial trial;
    std::atomic<uint32_t> timed{0}, wrong{0};
    const auto work = [&] {
      for (int i = 0; i < 20; ++i) {
        const WayTrial::Turn turn = trial.Next();
        if (turn.timed()) {
          timed.fetch_add(1);
          trial.Tell(turn, turn.way == Way::kTiles ? 5 : 4);
        } else if (turn.way == Way::kTiles) {
          wrong.fetch_add(1);
        }
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(timed, 2 * WayTrial::kSamples);
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(trial.chosen(), Way::kDirect);
  }
}

TEST(ShapeTrialsTest, FewColumnsHaveATrialOfTheirOwn) {
  ShapeTrials trials;
  for (int64_t columns = 2; columns <= 16; ++columns) {
    EXPECT_NE(&trials.For(columns), &trials.For(columns + 1)) << columns;
  }
  EXPECT_EQ(&trials.For(17), &trials.For(32));
  EXPECT_NE(&trials.For(32), &trials.For(33));
  EXPECT_EQ(&trials.For(33), &trials.For(64));
  EXPECT_NE(&trials.For(64), &trials.For(65));
  EXPECT_EQ(&trials.For(65), &trials.For(1 << 20));
}

TEST(WayTrialsTest, ShapesAreToldApartAndStay) {
  WayTrials trials;
  const WayTrials::Shape shape = {quant::Type::kQ4_0, true, 64, 128};
  ShapeTrials* const first = &trials.Of(shape);
  for (const WayTrials::Shape& other : {WayTrials::Shape{quant::Type::kQ8_0, true, 64, 128},
                                        {quant::Type::kQ4_0, false, 64, 128},
                                        {quant::Type::kQ4_0, true, 128, 128},
                                        {quant::Type::kQ4_0, true, 64, 64}}) {
    EXPECT_NE(&trials.Of(other), first);
  }
  EXPECT_EQ(&trials.Of(shape), first);
}

}  // namespace
}  // namespace trine::cpu
