#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "backends/cpu/team_run.h"

namespace trine::cpu {
namespace {

TEST(WorkCursorsTest, OneWorkerTakesAllInOrder) {
  WorkCursors cursors(1);
  for (uint32_t turn = 1; turn <= 3; ++turn) {
    int64_t next = 0;
    cursors.ForEachPortion(turn, 0, 10, 4, [&](reference::Range r) {
      EXPECT_EQ(r.begin, next);
      EXPECT_LE(r.end - r.begin, 4);
      next = r.end;
    });
    EXPECT_EQ(next, 10);
  }
}

// A worker that comes alone does all the work, its own share first.
TEST(WorkCursorsTest, HelpsThoseWhoAreBehind) {
  WorkCursors cursors(3);
  std::vector<int64_t> begins;
  cursors.ForEachPortion(1, 1, 9, 3, [&](reference::Range r) { begins.push_back(r.begin); });
  EXPECT_EQ(begins, (std::vector<int64_t>{3, 6, 0}));
  for (uint32_t late : {0u, 2u}) {
    cursors.ForEachPortion(1, late, 9, 3, [](reference::Range) { FAIL(); });
  }
}

// Threads that dawdle at random, over many turns, with sizes below and above the number of workers.
TEST(WorkCursorsTest, EveryUnitIsWorkedOnceWhoeverIsLate) {
  constexpr uint32_t kWorkers = 4;
  constexpr int64_t kMost = 50;
  constexpr uint32_t kTurns = 300;
  WorkCursors cursors(kWorkers);
  std::vector<std::atomic<int>> worked(kMost);
  std::atomic<int> wrong{0};
  std::barrier all(kWorkers);
  const auto work = [&](uint32_t worker) {
    std::mt19937 random(worker);
    for (uint32_t turn = 1; turn <= kTurns; ++turn) {
      const int64_t total = turn % (kMost + 1), portion = 1 + turn % 5;
      cursors.ForEachPortion(turn, worker, total, portion, [&](reference::Range r) {
        if (random() % 8 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 50));
        for (int64_t i = r.begin; i < r.end; ++i) ++worked[static_cast<size_t>(i)];
      });
      all.arrive_and_wait();
      if (worker == 0) {
        for (int64_t i = 0; i < kMost; ++i) {
          wrong += worked[static_cast<size_t>(i)].exchange(0) != (i < total ? 1 : 0);
        }
      }
      all.arrive_and_wait();
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t w = 0; w < kWorkers; ++w) threads.emplace_back(work, w);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace trine::cpu
