#include "detect/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "detect/testing/fake_root.h"
#include "detect/testing/scenarios.h"

namespace trine::detect {
namespace {

using testing::FakeRoot;
using testing::FindScenario;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
using testing::kGiB;
constexpr uint64_t k32GiBInKiB = 32 * kGiB / kKiB;

MemoryInfo Read(const FakeRoot& fake, Notes* notes = nullptr) {
  Notes unused;
  return ReadMemory(FileRoot(fake.path()), notes ? notes : &unused);
}

TEST(Memory, WithoutLimits) {
  FakeRoot fake;
  fake.Meminfo(k32GiBInKiB, k32GiBInKiB / 2);
  const MemoryInfo memory = Read(fake);
  EXPECT_EQ(memory.physical_bytes, 32 * kGiB);
  EXPECT_EQ(memory.total_bytes, 32 * kGiB);
  EXPECT_EQ(memory.available_bytes, 16 * kGiB);
  EXPECT_EQ(memory.limit_source, "");
  EXPECT_EQ(memory.swap_total_bytes, 2 * kMiB);
}

TEST(Memory, OldKernelWithoutMemAvailable) {
  FakeRoot fake;
  fake.File("/proc/meminfo",
            "MemTotal: 1000 kB\nMemFree: 100 kB\nBuffers: 20 kB\nCached: 3 kB\nSwapCached: 9 kB\n");
  Notes notes;
  EXPECT_EQ(Read(fake, &notes).available_bytes, 123 * kKiB);
  EXPECT_THAT(notes, Not(IsEmpty()));
}

TEST(Memory, MoreAvailableThanThereIsIsClamped) {
  FakeRoot fake;
  fake.Meminfo(100, 500);
  EXPECT_EQ(Read(fake).available_bytes, 100 * kKiB);
}

TEST(Memory, CgroupV2AncestorIsTighter) {
  FakeRoot fake;
  FindScenario("cgroup-v2")->build(&fake);
  const MemoryInfo memory = Read(fake);
  EXPECT_EQ(memory.physical_bytes, 32 * kGiB);
  EXPECT_EQ(memory.total_bytes, 4 * kGiB);
  EXPECT_EQ(memory.available_bytes, 3 * kGiB) << "4 - 2 used + 1 of inactive file cache";
  EXPECT_EQ(memory.limit_source, "cgroup v2 /user.slice: 4.0 GiB");
}

TEST(Memory, WiderLimitSharedWithNeighboursCanBind) {
  FakeRoot fake;
  fake.Meminfo(k32GiBInKiB, k32GiBInKiB)
      .File("/proc/self/cgroup", "0::/a/b\n")
      .File("/sys/fs/cgroup/a/b/memory.max", "1073741824\n")
      .File("/sys/fs/cgroup/a/b/memory.current", "0\n")
      .File("/sys/fs/cgroup/a/memory.max", "2147483648\n")
      .File("/sys/fs/cgroup/a/memory.current", "2130706432\n");
  const MemoryInfo memory = Read(fake);
  EXPECT_EQ(memory.limit_bytes, kGiB);
  EXPECT_EQ(memory.available_bytes, 16 * kMiB);
}

TEST(Memory, OverTheLimitIsZeroNotNegative) {
  FakeRoot fake;
  fake.Meminfo(k32GiBInKiB, k32GiBInKiB)
      .File("/proc/self/cgroup", "0::/a\n")
      .File("/sys/fs/cgroup/a/memory.max", "1000\n")
      .File("/sys/fs/cgroup/a/memory.current", "5000\n");
  EXPECT_EQ(Read(fake).available_bytes, 0u);
}

TEST(Memory, CgroupV1) {
  FakeRoot fake;
  FindScenario("cgroup-v1")->build(&fake);
  const MemoryInfo memory = Read(fake);
  EXPECT_EQ(memory.total_bytes, kGiB);
  EXPECT_EQ(memory.available_bytes, 768 * kMiB);
  EXPECT_EQ(memory.limit_source, "cgroup v1 /docker/abc: 1.0 GiB");
}

TEST(Memory, ContainerThatSeesOnlyTheMountedRoot) {
  FakeRoot fake;
  fake.Meminfo(k32GiBInKiB, k32GiBInKiB)
      .File("/proc/self/cgroup", "0::/../../pod/container\n")
      .File("/sys/fs/cgroup/memory.max", "2147483648\n");
  EXPECT_EQ(Read(fake).total_bytes, 2 * kGiB);
}

TEST(Memory, LimitWithoutMeminfoIsStillTold) {
  FakeRoot fake;
  fake.File("/proc/self/cgroup", "0::/a\n")
      .File("/sys/fs/cgroup/a/memory.max", "1073741824\n")
      .File("/sys/fs/cgroup/a/memory.current", "73741824\n");
  const MemoryInfo memory = Read(fake);
  EXPECT_EQ(memory.total_bytes, kGiB);
  EXPECT_EQ(memory.available_bytes, 1000000000u);
}

TEST(Cgroup, HybridHierarchyPrefersVersion1) {
  FakeRoot fake;
  fake.File("/proc/self/cgroup", "0::/x\n4:memory:/y\n");
  const Cgroup memory = FindCgroup(FileRoot(fake.path()), "memory");
  EXPECT_EQ(memory.version, 1);
  ASSERT_EQ(memory.folders.size(), 2u);
  EXPECT_EQ(memory.folders[0].path, "/y");
  EXPECT_EQ(memory.folders[1].path, "/");
  EXPECT_EQ(FindCgroup(FileRoot(fake.path()), "cpu").version, 2);
}

TEST(Cgroup, CpuQuota) {
  FakeRoot v2, v1, none;
  FindScenario("cgroup-v2")->build(&v2);
  FindScenario("cgroup-v1")->build(&v1);
  EXPECT_EQ(ReadCpuQuota(FileRoot(v2.path())), 1.5);
  EXPECT_EQ(ReadCpuQuota(FileRoot(v1.path())), 2.0);
  EXPECT_EQ(ReadCpuQuota(FileRoot(none.path())), std::nullopt);
  v2.File("/sys/fs/cgroup/user.slice/cpu.max", "0 0\n");
  EXPECT_EQ(ReadCpuQuota(FileRoot(v2.path())), std::nullopt);
}

}  // namespace
}  // namespace trine::detect
