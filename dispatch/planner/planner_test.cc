#include "dispatch/planner/planner.h"

#include <algorithm>
#include <string>

#include "dispatch/planner/planner_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

PlanOptions With(Strategy strategy, Optimize optimize = Optimize::kLatency) {
  PlanOptions options;
  options.strategy = strategy;
  options.optimize = optimize;
  return options;
}

std::string Find(const PlanProblem& problem, const PlanOptions& options = {}) {
  const auto placement = FindPlacement(problem, options);
  return placement.ok() ? Text(problem, *placement) : std::string(placement.status().message());
}

std::string WhyWithout(const PlanProblem& problem, size_t device, const PlanOptions& options = {}) {
  const auto placement = FindPlacement(problem, options);
  if (!placement.ok()) return std::string(placement.status().message());
  for (const LeftOutDevice& left_out : placement->left_out) {
    if (left_out.device == device) return left_out.reason;
  }
  return "it is used";
}

// Returns the bytes of this number of layers and of both ends.
uint64_t RoomFor(int layers) {
  return static_cast<uint64_t>(layers) * kTestLayerBytes + 2 * kTestEndBytes;
}

TEST(PlannerTest, TheFastestDeviceAloneWhereEverythingFits) {
  PlanProblem problem = TestProblem(16, {{"cpu", 1000}, {"igpu0", 800}, {"dgpu0", 100}});
  problem.devices[2].limit_bytes = RoomFor(16);
  EXPECT_EQ(Find(problem), "E dgpu0[0,16) H");
  const auto placement = FindPlacement(problem, {});
  EXPECT_EQ(placement->segments[0].bound, "nothing: fastest");
  EXPECT_EQ(placement->segments[0].change, "");
}

TEST(PlannerTest, TheRestGoesToTheNextFastestAndTheOthersAreLeftOut) {
  PlanProblem problem = TestProblem(16, {{"cpu", 1000}, {"igpu0", 1200}, {"dgpu0", 100}});
  problem.devices[2].limit_bytes = RoomFor(12);
  EXPECT_EQ(Find(problem), "E cpu[0,4) | dgpu0[4,16) H");
  EXPECT_THAT(WhyWithout(problem, 1), AllOf(HasSubstr("too slow: with it, "), HasSubstr("times)")));
  EXPECT_EQ(WhyWithout(problem, 0), "it is used");
}

TEST(PlannerTest, SaysWhichLimitBindsAndWhatMoreWouldBring) {
  PlanProblem problem = TestProblem(16, {{"cpu", 1000}, {"dgpu0", 100}});
  problem.devices[1].limit_bytes = RoomFor(12);
  const auto placement = FindPlacement(problem, {});
  ASSERT_TRUE(placement.ok());
  ASSERT_EQ(Text(problem, *placement), "E cpu[0,4) | dgpu0[4,16) H");
  EXPECT_EQ(placement->segments[0].bound, "what dgpu0 has no room for");
  EXPECT_EQ(placement->segments[1].bound, "memory of dgpu0 (1.2 GiB)");
  EXPECT_THAT(placement->segments[1].change,
              HasSubstr("with 400.0 MiB more on dgpu0 another 4 layers would go there"));
  problem.devices[1].limit_bytes += 400 << 20;
  EXPECT_EQ(Find(problem), "E dgpu0[0,16) H");
}

TEST(PlannerTest, SaysThatAPoolBinds) {
  PlanProblem problem = TestProblem(16, {{"cpu", 1000}, {"igpu0", 100}, {"dgpu0", 500}});
  problem.pools[0].capacity_bytes = RoomFor(10);
  const auto placement = FindPlacement(problem, {});
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(Text(problem, *placement), "E igpu0[0,10) | dgpu0[10,16) H");
  EXPECT_EQ(placement->segments[0].bound, "pool ram (1020.0 MiB)");
  EXPECT_THAT(placement->segments[0].change,
              HasSubstr("with 600.0 MiB more in pool ram another 6 layers would go there"));
}

TEST(PlannerTest, TheCpuAndTheIgpuShareOnePool) {
  PlanProblem problem = TestProblem(16, {{"cpu", 200}, {"igpu0", 100}, {"dgpu0", 500}});
  problem.pools[0].capacity_bytes = RoomFor(12);
  problem.devices[0].limit_bytes = problem.devices[1].limit_bytes = RoomFor(8);
  // Each device could have eight layers; together they have room for twelve.
  const auto placement = FindPlacement(problem, {});
  ASSERT_TRUE(placement.ok());
  EXPECT_LE(placement->pools[0].used_bytes, problem.pools[0].capacity_bytes);
  EXPECT_EQ(Text(problem, *placement), "E cpu[0,4) | dgpu0[4,8) | igpu0[8,16) H");
  problem.pools[0].capacity_bytes = kNoLimit;
  EXPECT_EQ(Find(problem), "E cpu[0,8) | igpu0[8,16) H");
}

TEST(PlannerTest, ScratchCountsOnlyWhereADeviceIsUsed) {
  PlanProblem problem = TestProblem(8, {{"cpu", 1000}, {"igpu0", 100}});
  problem.pools[0].capacity_bytes = RoomFor(8);
  problem.devices[0].fixed_bytes = 1;
  EXPECT_EQ(Find(problem), "E igpu0[0,8) H");
  problem.devices[1].fixed_bytes = 1;
  EXPECT_THAT(Find(problem), HasSubstr("does not fit"));
}

TEST(PlannerTest, ATransferThatCostsMoreThanItSavesIsNotMade) {
  PlanProblem problem = TestProblem(8, {{"cpu", 1000}, {"dgpu0", 900}}, 10000);
  problem.devices[1].limit_bytes = RoomFor(7);
  EXPECT_EQ(Find(problem), "E cpu[0,8) H");
  EXPECT_THAT(WhyWithout(problem, 1), HasSubstr("too slow"));
  problem.decode_transfer_ns = problem.prefill_transfer_ns = {{0, 1}, {1, 0}};
  EXPECT_EQ(Find(problem), "E cpu[0,1) | dgpu0[1,8) H");
}

TEST(PlannerTest, NothingFitsSaysWhatIsNeededAndWhatThereIs) {
  PlanProblem problem = TestProblem(16, {{"cpu", 1000}, {"igpu0", 900}, {"dgpu0", 100}});
  problem.pools[0].capacity_bytes = RoomFor(8);
  problem.devices[2].limit_bytes = RoomFor(4);
  problem.devices[1].left_out = "lost";
  const auto placement = FindPlacement(problem, {});
  EXPECT_EQ(placement.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(placement.status().message()),
              AllOf(HasSubstr("need 1.6 GiB"), HasSubstr("pool ram has 820.0 MiB"),
                    HasSubstr("pool dgpu0 memory has no limit, of which 420.0 MiB may be used"),
                    HasSubstr("igpu0 is not used: lost")));
}

TEST(PlannerTest, DevicesAreLeftOutForAReason) {
  PlanProblem problem =
      TestProblem(4, {{"cpu", 100}, {"igpu0", 100}, {"dgpu0", 10}, {"dgpu1", 10}});
  problem.devices[1].left_out = "lost";
  problem.devices[2].limit_bytes = kTestEndBytes / 2;
  problem.devices[3].decode.unit_ns.assign(6, kCannotRun);
  EXPECT_EQ(Find(problem), "E cpu[0,4) H");
  EXPECT_EQ(WhyWithout(problem, 1), "lost");
  EXPECT_EQ(WhyWithout(problem, 2),
            "too small: its scratch and one layer need 10.0 MiB, and it has 5.0 MiB");
  EXPECT_EQ(WhyWithout(problem, 3), "it can run no whole layer");
  EXPECT_EQ(FindPlacement(problem, {})->segments[0].bound,
            "being the only device that may have layers");
}

TEST(PlannerTest, ADeviceThatFitsOnlyWithoutTheOthersIsTooSmall) {
  PlanProblem problem = TestProblem(4, {{"cpu", 100}, {"igpu0", 1000}});
  problem.pools[0].capacity_bytes = RoomFor(4);
  problem.devices[0].fixed_bytes = problem.devices[1].fixed_bytes = 0;
  problem.devices[1].fixed_bytes = 1;
  EXPECT_EQ(WhyWithout(problem, 1), "too small: no placement that uses it fits");
}

TEST(PlannerTest, OneLayerOrNone) {
  PlanProblem problem = TestProblem(1, {{"cpu", 1000}, {"dgpu0", 100}});
  EXPECT_EQ(Find(problem), "E dgpu0[0,1) H");
  problem.devices[1].limit_bytes = kTestEndBytes;
  EXPECT_EQ(Find(problem), "E cpu[0,1) H");
  EXPECT_EQ(Find(TestProblem(0, {{"cpu", 1000}})), "E cpu[0,0) H");
}

TEST(PlannerTest, AnEndMayStandAlone) {
  PlanProblem problem = TestProblem(4, {{"cpu", 1000}, {"dgpu0", 10}});
  // The embedding has no room in addition to the layers.
  problem.devices[1].limit_bytes = RoomFor(4) - kTestEndBytes;
  EXPECT_EQ(Find(problem), "E cpu[0,0) | dgpu0[0,4) H");
}

TEST(PlannerTest, AMatrixThatBothEndsShareIsCountedOnce) {
  PlanProblem problem = TestProblem(4, {{"cpu", 1000}, {"dgpu0", 10}});
  problem.devices[1].limit_bytes = RoomFor(4) - kTestEndBytes;
  problem.devices[1].tied_bytes = kTestEndBytes;
  for (const Strategy strategy : {Strategy::kAuto, Strategy::kMemory}) {
    EXPECT_EQ(Find(problem, With(strategy)), "E dgpu0[0,4) H");
  }
}

TEST(PlannerTest, TiesGoToFewerSegmentsThenToTheFirstDevices) {
  PlanProblem problem = TestProblem(4, {{"dgpu0", 100}, {"dgpu1", 100}, {"dgpu2", 100}}, 0);
  for (PlanDevice& device : problem.devices) device.decode.run_ns = device.prefill.run_ns = 0;
  EXPECT_EQ(Find(problem), "E dgpu0[0,4) H");
  EXPECT_THAT(WhyWithout(problem, 1), HasSubstr("no gain"));
  for (PlanDevice& device : problem.devices) device.limit_bytes = RoomFor(3);
  EXPECT_EQ(Find(problem), "E dgpu0[0,1) | dgpu1[1,4) H");
}

TEST(PlannerTest, DevicesThatShareWithOthersAreNotAlike) {
  PlanProblem problem = TestProblem(8, {{"cpu", 100}, {"igpu0", 1000}, {"dgpu0", 1000}});
  for (PlanDevice& device : problem.devices) device.limit_bytes = RoomFor(4);
  problem.pools[0].capacity_bytes = RoomFor(4);
  EXPECT_EQ(Find(problem), "E cpu[0,4) | dgpu0[4,8) H");
}

TEST(PlannerTest, ThroughputUsesDevicesThatLatencyLeavesOut) {
  const PlanProblem problem = TestProblem(12, {{"dgpu0", 100}, {"dgpu1", 200}});
  EXPECT_EQ(Find(problem), "E dgpu0[0,12) H");
  EXPECT_EQ(Find(problem, With(Strategy::kAuto, Optimize::kThroughput)),
            "E dgpu0[0,8) | dgpu1[8,12) H");
}

TEST(PlannerTest, ThroughputLeavesOutADeviceThatOnlyTakesBandwidthFromAnother) {
  PlanProblem problem = TestProblem(12, {{"cpu", 100}, {"igpu0", 100}});
  for (PlanDevice& device : problem.devices) device.decode.run_ns = 0;
  PlanOptions options = With(Strategy::kAuto, Optimize::kThroughput);
  options.request = {0, 128};
  EXPECT_EQ(Find(problem, options), "E cpu[0,12) H");
  // With its own bandwidth, it takes half of the layers.
  problem.devices[1].domain = 9;
  EXPECT_EQ(Find(problem, options), "E cpu[0,6) | igpu0[6,12) H");
  // So it does if the request is bound by arithmetic.
  problem.devices[1].domain = 0;
  options.request = {512, 1};
  EXPECT_EQ(Find(problem, options), "E cpu[0,6) | igpu0[6,12) H");
}

TEST(PlannerTest, BalancedMakesStagesEvenWhateverTheyShare) {
  PlanProblem problem = TestProblem(12, {{"cpu", 100}, {"igpu0", 100}, {"dgpu0", 50}});
  EXPECT_EQ(Find(problem, With(Strategy::kBalanced)), "E cpu[0,3) | igpu0[3,6) | dgpu0[6,12) H");
}

TEST(PlannerTest, MemoryFillsGpusAlikeAndGivesTheCpuOnlyTheRest) {
  PlanProblem problem = TestProblem(12, {{"cpu", 100}, {"dgpu0", 100}, {"dgpu1", 10}});
  problem.devices[1].limit_bytes = RoomFor(20);
  problem.devices[2].limit_bytes = RoomFor(10);
  const PlanOptions options = With(Strategy::kMemory);
  EXPECT_EQ(Find(problem, options), "E dgpu0[0,8) | dgpu1[8,12) H");
  EXPECT_EQ(WhyWithout(problem, 0, options), "the GPUs have room for everything");
  EXPECT_THAT(FindPlacement(problem, options)->segments[0].bound, HasSubstr("its share"));
  problem.devices[1].limit_bytes = RoomFor(6);
  problem.devices[2].limit_bytes = RoomFor(4);
  EXPECT_EQ(Find(problem, options), "E dgpu0[0,6) | cpu[6,8) | dgpu1[8,12) H");
  EXPECT_EQ(FindPlacement(problem, options)->segments[1].bound, "what the GPUs have no room for");
}

TEST(PlannerTest, TakesEightDevicesAndSaysWhichItDidNotLookAt) {
  std::vector<std::pair<std::string, int64_t>> many;
  for (int i = 0; i < 9; ++i) many.emplace_back(absl::StrCat("dgpu", i), 100 + i);
  EXPECT_EQ(WhyWithout(TestProblem(4, many), 8), "not looked at: 8 devices came before it");
  EXPECT_THAT(WhyWithout(TestProblem(4, many), 7), HasSubstr("too slow"));
}

// Returns a problem of 60 layers in which each of the first layers has a part on a device of its
// own, without room for it, if the layer is on dgpu0. That makes a group of each.
PlanProblem ProblemWithGroups(int groups) {
  PlanProblem problem = TestProblem(60, {{"cpu", 1000}, {"dgpu0", 100}, {"igpu0", 1100}});
  for (int i = 0; i < groups; ++i) {
    PlanDevice owner = TestDevice(absl::StrCat("other", i), 60, 1000, 0);
    owner.left_out = "not asked for";
    owner.limit_bytes = 999;
    PlanShare share;
    share.device = problem.devices.size();
    share.what = "experts";
    share.bytes.resize(62);
    share.bytes[1 + i] = 1000;
    share.decode_ns.resize(62);
    share.prefill_ns.resize(62);
    problem.devices[1].elsewhere.push_back(share);
    problem.devices.push_back(owner);
  }
  const size_t n = problem.devices.size();
  problem.decode_transfer_ns.assign(n, std::vector<int64_t>(n, 100));
  problem.prefill_transfer_ns = problem.decode_transfer_ns;
  return problem;
}

TEST(PlannerTest, KeepsToMoreGroupsThanItCounts) {
  for (const Optimize optimize : {Optimize::kLatency, Optimize::kThroughput}) {
    for (const int groups : {20, 30, 50}) {
      SCOPED_TRACE(groups);
      const PlanProblem problem = ProblemWithGroups(groups);
      PlanOptions options = With(Strategy::kAuto, optimize);
      options.explain = false;
      const auto placement = FindPlacement(problem, options);
      ASSERT_TRUE(placement.ok()) << placement.status();
      EXPECT_TRUE(placement->violations.empty()) << placement->violations.front();
      EXPECT_EQ(placement->exact, groups == 20);
      EXPECT_THAT(Text(problem, *placement), HasSubstr(absl::StrCat("dgpu0[", groups, ",60)")));
    }
  }
}

TEST(PlannerTest, GivesTheSameTwice) {
  const PlanProblem problem = TestProblem(12, {{"cpu", 100}, {"igpu0", 100}, {"dgpu0", 50}});
  for (const Strategy strategy : {Strategy::kAuto, Strategy::kMemory, Strategy::kBalanced}) {
    EXPECT_EQ(Find(problem, With(strategy)), Find(problem, With(strategy)));
  }
}

}  // namespace
}  // namespace trine
