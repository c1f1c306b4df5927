#include "runtime/engine/progress_relay.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;

TEST(ProgressRelayTest, WhoWaitsIsToldOnTheirOwnThread) {
  ProgressRelay relay;
  std::atomic<bool> done = false;
  std::vector<bool> answers;
  std::thread worker([&] {
    for (const double fraction : {0.25, 0.5, 1.0}) answers.push_back(relay.Ask(fraction));
    done = true;
    relay.bell()->Ring();
  });
  std::vector<double> told;
  std::vector<std::thread::id> threads;
  while (!done) {
    relay.bell()->WaitFor(5ms);
    EXPECT_TRUE(relay.Answer([&](double fraction) {
      if (told.empty() || told.back() != fraction) told.push_back(fraction);
      threads.push_back(std::this_thread::get_id());
      return true;
    }));
  }
  worker.join();
  EXPECT_THAT(answers, ElementsAre(true, true, true));
  if (told.front() == 0) told.erase(told.begin());  // Ask was not called yet
  EXPECT_THAT(told, ElementsAre(0.25, 0.5, 1.0));
  EXPECT_THAT(threads, Each(std::this_thread::get_id()));
}

TEST(ProgressRelayTest, WhoIsToStopHearsOfIt) {
  ProgressRelay relay;
  // Ask was not called: the work may hang.
  EXPECT_FALSE(relay.Answer([](double) { return false; }));
  EXPECT_FALSE(relay.Wanted());
  EXPECT_FALSE(relay.Ask(0.5));
  EXPECT_FALSE(relay.Answer([](double) { return true; }));
}

TEST(ProgressRelayTest, WhoAsksWhenNobodyIsThereIsLetGo) {
  ProgressRelay relay;
  bool answer = true;
  std::thread worker([&] { answer = relay.Ask(0.5); });
  relay.bell()->WaitFor(10s);
  EXPECT_TRUE(relay.Wanted());
  relay.Leave();
  worker.join();
  EXPECT_FALSE(answer);
}

}  // namespace
}  // namespace trine
