#include "backends/vulkan/exec/recorder.h"
#include "gtest/gtest.h"

namespace trine::vulkan {
namespace {

const VkBuffer kA = reinterpret_cast<VkBuffer>(1), kB = reinterpret_cast<VkBuffer>(2);

Binding Use(VkBuffer buffer, uint64_t offset, uint64_t bytes, Access access) {
  return {{buffer, offset, bytes}, access};
}

bool After(const Binding& first, const Binding& second) {
  HazardTracker tracker;
  tracker.Note({&first, 1});
  return tracker.NeedsBarrier({&second, 1});
}

TEST(HazardTrackerTest, ReadsDoNotDisturbReads) {
  EXPECT_FALSE(After(Use(kA, 0, 64, Access::kRead), Use(kA, 0, 64, Access::kRead)));
}

TEST(HazardTrackerTest, WhatIsWrittenIsWaitedFor) {
  for (const Access access : {Access::kRead, Access::kWrite, Access::kReadWrite}) {
    EXPECT_TRUE(After(Use(kA, 0, 64, Access::kWrite), Use(kA, 32, 64, access)));
    EXPECT_TRUE(After(Use(kA, 0, 64, Access::kReadWrite), Use(kA, 0, 1, access)));
  }
}

TEST(HazardTrackerTest, WhatIsReadIsNotOverwritten) {
  EXPECT_TRUE(After(Use(kA, 0, 64, Access::kRead), Use(kA, 63, 1, Access::kWrite)));
  EXPECT_TRUE(After(Use(kA, 0, 64, Access::kRead), Use(kA, 0, 64, Access::kReadWrite)));
}

TEST(HazardTrackerTest, OtherBytesAreNoConcern) {
  EXPECT_FALSE(After(Use(kA, 0, 64, Access::kWrite), Use(kA, 64, 64, Access::kWrite)));
  EXPECT_FALSE(After(Use(kA, 64, 64, Access::kWrite), Use(kA, 0, 64, Access::kRead)));
  EXPECT_FALSE(After(Use(kA, 0, 64, Access::kWrite), Use(kB, 0, 64, Access::kWrite)));
}

TEST(HazardTrackerTest, ABarrierSettlesAll) {
  HazardTracker tracker;
  const Binding uses[] = {Use(kA, 0, 64, Access::kWrite), Use(kB, 0, 64, Access::kRead)};
  tracker.Note(uses);
  const Binding next[] = {Use(kB, 0, 64, Access::kWrite)};
  EXPECT_TRUE(tracker.NeedsBarrier(next));
  EXPECT_TRUE(tracker.NeedsBarrier(uses));
  tracker.Barrier();
  EXPECT_FALSE(tracker.NeedsBarrier(next));
  EXPECT_FALSE(tracker.NeedsBarrier(uses));
}

}  // namespace
}  // namespace trine::vulkan
