#include "dispatch/cost/machine_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "detect/testing/fake_root.h"

namespace trine {
namespace {

using ::testing::IsEmpty;

constexpr char kStat[] =
    "cpu  400 40 80 4000 40 8 8 20 3 3\n"
    "cpu0 100 10 20 1000 10 2 2 5 1 1\n"
    "cpu1 200 20 40 1000 10 4 4 10 1 1\n"
    "cpu2 100 10 20 2000 20 2 2 5 1 1\n"
    "intr 17 0 0\nctxt 9\n";

// Ten seconds on two processors of which this process used `own`, and all together `all`.
CpuTimes TenSeconds(double own, double all) {
  CpuTimes times;
  times.wall_s = 10;
  times.own_s = own;
  times.all_s = all;
  times.processors = 2;
  return times;
}

CpuTimes Beginning() {
  CpuTimes times;
  times.processors = 2;
  return times;
}

TEST(MachineLoad, ReadsTheProcessorsThatCount) {
  const CpuTimes all = ParseCpuTimes(kStat, {}, 100);
  EXPECT_EQ(all.processors, 3);
  EXPECT_DOUBLE_EQ(all.all_s, 5.36);
  EXPECT_DOUBLE_EQ(all.stolen_s, 0.2);
  const CpuTimes one = ParseCpuTimes(kStat, {1, 7}, 100);
  EXPECT_EQ(one.processors, 1);
  EXPECT_DOUBLE_EQ(one.all_s, 2.68) << "neither idle nor waiting";
  EXPECT_DOUBLE_EQ(one.stolen_s, 0.1);
}

TEST(MachineLoad, BadTextIsNoProcessor) {
  for (const char* text : {"", "cpu", "cpux 1 2 3\n", "\n\n\n", "processor 1\n"}) {
    EXPECT_EQ(ParseCpuTimes(text, {}, 100).processors, 0) << text;
  }
  EXPECT_DOUBLE_EQ(ParseCpuTimes("cpu0 100 x\n", {}, 100).all_s, 1) << "an old kernel's columns";
}

TEST(MachineLoad, ReadsTheMomentOfAMachine) {
  detect::testing::FakeRoot fake;
  fake.File("/proc/stat", kStat);
  const CpuTimes now = ReadCpuTimes(detect::FileRoot(fake.path()), {0, 1});
  EXPECT_EQ(now.processors, 2);
  EXPECT_GT(now.all_s, 0);
  EXPECT_GT(now.wall_s, 0);
  EXPECT_GE(now.own_s, 0);
  fake.Remove("/proc/stat");
  EXPECT_EQ(ReadCpuTimes(detect::FileRoot(fake.path()), {0, 1}).processors, 0);
}

TEST(MachineLoad, OwnWorkIsNoOtherWork) {
  EXPECT_THAT(DescribeLoad(Beginning(), TenSeconds(20, 20)), IsEmpty());
  EXPECT_THAT(DescribeLoad(Beginning(), TenSeconds(12, 13)), IsEmpty()) << "a little goes on";
}

TEST(MachineLoad, OtherWorkIsNamed) {
  EXPECT_EQ(DescribeLoad(Beginning(), TenSeconds(6, 20)),
            "other processes used 1.4 of 2 processors");
}

// On 64 processors, what 2 processors call busy leaves room for everybody.
TEST(MachineLoad, ALargeMachineHasMoreRoom) {
  CpuTimes before = Beginning(), after = TenSeconds(160, 180);
  before.processors = after.processors = 64;
  EXPECT_THAT(DescribeLoad(before, after), IsEmpty());
  after.all_s = 160 + 100;
  EXPECT_EQ(DescribeLoad(before, after), "other processes used 10.0 of 64 processors");
}

TEST(MachineLoad, TimeThatAHypervisorTookIsNamed) {
  CpuTimes after = TenSeconds(16, 20);
  after.stolen_s = 3;
  EXPECT_EQ(DescribeLoad(Beginning(), after),
            "other processes used 0.4 of 2 processors and other virtual machines took 0.3 of 2 "
            "processors");
}

// Some sandboxes have no /proc/stat, or one that counts nothing.
TEST(MachineLoad, WithoutCountersItGoesByPreemption) {
  for (const int processors : {0, 2}) {
    CpuTimes before, after = TenSeconds(5, 0);
    before.processors = after.processors = processors;
    after.preempted = 100;
    EXPECT_THAT(DescribeLoad(before, after), IsEmpty());
    after.preempted = 2000;
    EXPECT_EQ(DescribeLoad(before, after), "other work took the processor away 400 times a second");
  }
}

TEST(MachineLoad, NoTimeSaysNothing) {
  EXPECT_THAT(DescribeLoad(CpuTimes(), CpuTimes()), IsEmpty());
  EXPECT_THAT(DescribeLoad(TenSeconds(1, 9), Beginning()), IsEmpty()) << "a clock that went back";
}

}  // namespace
}  // namespace trine
