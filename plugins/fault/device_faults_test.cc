#include "plugins/fault/device_faults.h"

#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine::fault {
namespace {

using ::testing::ElementsAre;

std::vector<Fault> Parse(const std::string& text) {
  const auto spec = FaultSpec::Parse(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? spec->faults : std::vector<Fault>();
}

const DeviceNames kCpu{"cpu", "CPU"};

// Returns which of the first `n` calls are struck.
std::vector<int> Struck(DeviceFaults& faults, Moment moment, int n, bool decode = false) {
  std::vector<int> struck;
  for (int i = 1; i <= n; ++i) {
    if (faults.Count(moment, decode).fault != nullptr) struck.push_back(i);
  }
  return struck;
}

TEST(DeviceFaultsTest, StrikesTheCallsThatAreMeant) {
  DeviceFaults faults(kCpu, Parse("cpu:oom@alloc=3;cpu:lost@run=2-4;dgpu:lost@run=1"));
  EXPECT_THAT(Struck(faults, Moment::kAlloc, 6), ElementsAre(3));
  EXPECT_THAT(Struck(faults, Moment::kRun, 6), ElementsAre(2, 3, 4));
  EXPECT_THAT(Struck(faults, Moment::kPlan, 6), ElementsAre());
  DeviceFaults open_end(kCpu, Parse("cpu:oom@alloc=4+"));
  EXPECT_THAT(Struck(open_end, Moment::kAlloc, 6), ElementsAre(4, 5, 6));
  DeviceFaults always(kCpu, Parse("cpu:oom@plan"));
  EXPECT_THAT(Struck(always, Moment::kPlan, 3), ElementsAre(1, 2, 3));
}

TEST(DeviceFaultsTest, LoadIsTheFirstMemoryOfEitherKind) {
  DeviceFaults faults(kCpu, Parse("cpu:oom@load"));
  EXPECT_EQ(faults.Count(Moment::kPlan).fault, nullptr);
  EXPECT_NE(faults.Count(Moment::kImport).fault, nullptr);
  EXPECT_EQ(faults.Count(Moment::kAlloc).fault, nullptr);
  EXPECT_EQ(faults.Count(Moment::kImport).fault, nullptr);
}

TEST(DeviceFaultsTest, TokensAreRunsThatDecode) {
  DeviceFaults faults(kCpu, Parse("cpu:lost@token=2"));
  EXPECT_THAT(Struck(faults, Moment::kRun, 5), ElementsAre());
  EXPECT_THAT(Struck(faults, Moment::kRun, 5, true), ElementsAre(2));
}

TEST(DeviceFaultsTest, SlownessAddsUpAndGoesWithOthers) {
  DeviceFaults faults(kCpu, Parse("cpu:slow=3@run;cpu:slow=4@run=2;cpu:lost@run=2"));
  EXPECT_EQ(faults.Count(Moment::kRun).slow.count(), 3);
  const Strike second = faults.Count(Moment::kRun);
  EXPECT_EQ(second.slow.count(), 7);
  ASSERT_NE(second.fault, nullptr);
  EXPECT_EQ(second.kind, Kind::kLost);
}

TEST(DeviceFaultsTest, SeedsReproduce) {
  const auto draw = [](const std::string& text, const DeviceNames& names) {
    DeviceFaults faults(names, Parse(text));
    return Struck(faults, Moment::kRun, 2000);
  };
  const std::string seed_42 = "*:lost@random,seed=42,rate=0.05";
  const std::vector<int> first = draw(seed_42, kCpu);
  EXPECT_EQ(first, draw(seed_42, kCpu));
  EXPECT_NE(first, draw("*:lost@random,seed=43,rate=0.05", kCpu));
  EXPECT_NE(first, draw(seed_42, {"dgpu0", "ROCm0"}));
  // 2000 draws at 0.05: 100, give or take five standard deviations.
  EXPECT_GT(first.size(), 50u);
  EXPECT_LT(first.size(), 150u);
}

TEST(DeviceFaultsTest, RandomKindsStrikeWhereTheyCan) {
  DeviceFaults oom(kCpu, Parse("cpu:oom@random,rate=1"));
  EXPECT_NE(oom.Count(Moment::kAlloc).fault, nullptr);
  EXPECT_NE(oom.Count(Moment::kPlan).fault, nullptr);
  EXPECT_EQ(oom.Count(Moment::kRun).fault, nullptr);
  DeviceFaults hang(kCpu, Parse("cpu:hang@random,rate=1"));
  EXPECT_EQ(hang.Count(Moment::kAlloc).fault, nullptr);
  EXPECT_NE(hang.Count(Moment::kRun).fault, nullptr);
}

TEST(DeviceFaultsTest, ChaosIsEverythingInTurn) {
  DeviceFaults faults(kCpu, Parse("cpu:chaos@random,rate=1"));
  EXPECT_TRUE(faults.spoils_outputs());
  int counts[8] = {};
  for (int i = 0; i < 200; ++i) {
    const Kind at_run = faults.Count(Moment::kRun).kind;
    const Kind at_alloc = faults.Count(Moment::kAlloc).kind;
    EXPECT_TRUE(at_alloc == Kind::kOom || at_alloc == Kind::kLost);
    ++counts[static_cast<int>(at_run)];
  }
  for (const Kind kind : {Kind::kOom, Kind::kLost, Kind::kTimeout, Kind::kGarbage}) {
    EXPECT_GT(counts[static_cast<int>(kind)], 0);
  }
  EXPECT_EQ(counts[static_cast<int>(Kind::kHang)], 0);
}

TEST(DeviceFaultsTest, GoneUntilItIsBack) {
  DeviceFaults faults(kCpu, Parse("cpu:lost@run=1;cpu:lost@run=2,back@open=2;"
                                  "cpu:lost@run=3,back=200ms"));
  EXPECT_FALSE(faults.TryOpen().has_value());
  const auto lose = [&] { faults.SetGone(*faults.Count(Moment::kRun).fault); };
  lose();
  EXPECT_TRUE(faults.TryOpen().has_value());
  EXPECT_TRUE(faults.TryOpen().has_value());
  lose();
  EXPECT_TRUE(faults.TryOpen().has_value());
  EXPECT_FALSE(faults.TryOpen().has_value());
  EXPECT_FALSE(faults.TryOpen().has_value());
  lose();
  EXPECT_TRUE(faults.TryOpen().has_value());
  std::this_thread::sleep_for(std::chrono::milliseconds(220));
  EXPECT_FALSE(faults.TryOpen().has_value());
}

TEST(DeviceFaultsTest, CountsFromSeveralThreads) {
  DeviceFaults faults(kCpu, Parse("cpu:oom@write=500-1499"));
  std::atomic<int> struck{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        if (faults.Count(Moment::kWrite).fault != nullptr) ++struck;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(struck.load(), 1000);
}

}  // namespace
}  // namespace trine::fault
