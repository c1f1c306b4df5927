#include "detect/cpu/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "detect/testing/fake_root.h"

namespace trine::detect {
namespace {

using ::testing::ElementsAre;
using testing::FakeRoot;
using ::testing::IsEmpty;
using ::testing::Not;

Topology Read(const FakeRoot& fake, Notes* notes = nullptr) {
  Notes unused;
  return ReadTopology(FileRoot(fake.path()), notes ? notes : &unused);
}

TEST(TopologySysfs, TwoPackagesWithSmt) {
  FakeRoot fake;
  fake.Cores({{0, 4}, {1, 5}}, 0).Cores({{2, 6}, {3, 7}}, 1);
  fake.Node(0, "0-1,4-5", 1024).Node(1, "2-3,6-7", 2048);
  const Topology topology = Read(fake);
  EXPECT_EQ(topology.packages, 2);
  EXPECT_EQ(topology.cores, 4);
  EXPECT_EQ(topology.threads, 8);
  EXPECT_EQ(topology.threads_per_core, 2);
  ASSERT_EQ(topology.numa_nodes.size(), 2u);
  EXPECT_THAT(topology.numa_nodes[1].cpus, ElementsAre(2, 3, 6, 7));
  EXPECT_EQ(topology.numa_nodes[1].memory_bytes, 2048u * 1024);
}

TEST(TopologySysfs, HybridCores) {
  FakeRoot fake;
  fake.Cores({{0, 1}, {2, 3}, {4}, {5}, {6}, {7}});
  fake.Cache(0, 0, 1, "Data", "48K", "0-1").Cache(4, 0, 1, "Data", "32K", "4");
  fake.Cache(5, 0, 1, "Data", "32K", "5");
  const Topology topology = Read(fake);
  EXPECT_EQ(topology.cores, 6);
  EXPECT_EQ(topology.threads, 8);
  EXPECT_EQ(topology.threads_per_core, 2);
  ASSERT_EQ(topology.caches.size(), 2u);
  EXPECT_EQ(topology.caches[0].size_bytes, 48u * 1024);
  EXPECT_EQ(topology.caches[0].shared_by_threads, 2);
  EXPECT_EQ(topology.caches[1].instances, 2);
}

TEST(TopologySysfs, OfflineCpusDoNotCount) {
  FakeRoot fake;
  fake.Cores({{0, 2}, {1, 3}}).File("/sys/devices/system/cpu/online", "0-2\n");
  fake.Cache(0, 3, 3, "Unified", "8M", "0-3").Node(0, "0-3", 1);
  const Topology topology = Read(fake);
  EXPECT_THAT(topology.cpus, ElementsAre(0, 1, 2));
  EXPECT_EQ(topology.cores, 2);
  EXPECT_EQ(topology.threads, 3);
  EXPECT_EQ(topology.caches[0].shared_by_threads, 3);
  EXPECT_THAT(topology.numa_nodes[0].cpus, ElementsAre(0, 1, 2));
}

TEST(TopologySysfs, OfflineWithoutAList) {
  FakeRoot fake;
  fake.Cores({{0}, {1}, {2}}).File("/sys/devices/system/cpu/cpu1/online", "0\n");
  EXPECT_THAT(Read(fake).cpus, ElementsAre(0, 2));
}

TEST(TopologySysfs, CachesOfACoreAreItsPart) {
  FakeRoot fake;
  fake.Cores({{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  fake.Cache(0, 0, 1, "Data", "48K", "0,4").Cache(0, 1, 1, "Instruction", "64K", "0,4");
  fake.Cache(0, 2, 2, "Unified", "4M", "0-1,4-5").Cache(0, 3, 3, "Unified", "32M", "0-7");
  EXPECT_EQ(ReadCoreCaches(FileRoot(fake.path())), (CoreCaches{48u << 10, 2u << 20}));
}

TEST(TopologySysfs, CachesOfACoreAreThoseOfALargeOne) {
  for (const bool large_first : {false, true}) {
    FakeRoot fake;
    fake.Cores({{0}, {1}, {2}, {3}});
    for (int cpu = 0; cpu < 4; ++cpu) {
      const bool large = (cpu < 2) == large_first;
      const std::string cpus = cpu < 2 ? "0-1" : "2-3";
      fake.Cache(cpu, 0, 1, "Data", large ? "64K" : "32K", std::to_string(cpu));
      fake.Cache(cpu, 1, 2, "Unified", large ? "1M" : "256K", cpus);
    }
    EXPECT_EQ(ReadCoreCaches(FileRoot(fake.path())), (CoreCaches{64u << 10, 512u << 10}));
  }
}

TEST(TopologySysfs, CachesOfACoreWhoseThreadsAreNotNamed) {
  FakeRoot fake;
  for (int cpu = 0; cpu < 4; ++cpu) {
    fake.Folder("/sys/devices/system/cpu/cpu" + std::to_string(cpu));
    fake.Cache(cpu, 0, 1, "Data", "48K", cpu < 2 ? "0-1" : "2-3");
    fake.Cache(cpu, 1, 2, "Unified", "4M", "0-3");
  }
  EXPECT_EQ(ReadCoreCaches(FileRoot(fake.path())), (CoreCaches{48u << 10, 2u << 20}));
}

TEST(TopologySysfs, CachesOfACoreThatNothingIsKnownOf) {
  FakeRoot fake;
  EXPECT_EQ(ReadCoreCaches(FileRoot(fake.path())), CoreCaches{});
  fake.Cores({{0}}).Cache(0, 0, 1, "Data", "many", "0").Cache(0, 1, 2, "Unified", "1M", "?");
  EXPECT_EQ(ReadCoreCaches(FileRoot(fake.path())), (CoreCaches{0, 1u << 20}));
}

TEST(TopologySysfs, SharedCacheIsOneInstance) {
  FakeRoot fake;
  fake.Cores({{0}, {1}, {2}, {3}});
  for (int cpu = 0; cpu < 4; ++cpu) fake.Cache(cpu, 3, 3, "Unified", "16M", "0-3");
  const Topology topology = Read(fake);
  ASSERT_EQ(topology.caches.size(), 1u);
  const CacheInfo expected{3, CacheType::kUnified, 16u << 20, 64, 1, 4};
  EXPECT_EQ(topology.caches[0], expected);
}

TEST(TopologySysfs, ListWithoutFoldersIsNotBelieved) {
  FakeRoot fake;
  fake.File("/sys/devices/system/cpu/online", "0-65535\n");
  Notes notes;
  EXPECT_EQ(Read(fake, &notes).threads, 0);
  EXPECT_THAT(notes, Not(IsEmpty()));
}

TEST(TopologySysfs, WithoutTopologyEachCpuIsACore) {
  FakeRoot fake;
  fake.Folder("/sys/devices/system/cpu/cpu0").Folder("/sys/devices/system/cpu/cpu1");
  fake.Folder("/sys/devices/system/cpu/cpu99999999999").Folder("/sys/devices/system/cpu/cpufreq");
  Notes notes;
  const Topology topology = Read(fake, &notes);
  EXPECT_EQ(topology.threads, 2);
  EXPECT_EQ(topology.cores, 2);
  EXPECT_THAT(notes, Not(IsEmpty()));
}

TEST(TopologySysfs, NodesWithoutReadableFilesAreLeftOut) {
  FakeRoot fake;
  fake.Cores({{0}}).Node(0, "0", 4).Folder("/sys/devices/system/node/node1");
  fake.Link("/sys/devices/system/node/node2", "node2");
  EXPECT_EQ(Read(fake).numa_nodes.size(), 1u);
}

TEST(TopologySysfs, SiblingsThatDoNotIncludeTheCpuAreIgnored) {
  FakeRoot fake;
  fake.Cores({{0}, {1}}).File("/sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "0\n");
  EXPECT_EQ(Read(fake).cores, 2);
}

// Sizes and sharing of data and unified caches, which both readers should know.
std::set<std::tuple<int, int, uint64_t, int>> CacheShapes(const Topology& topology) {
  std::set<std::tuple<int, int, uint64_t, int>> shapes;
  for (const CacheInfo& cache : topology.caches) {
    shapes.insert({cache.level, static_cast<int>(cache.type), cache.size_bytes, cache.instances});
  }
  return shapes;
}

TEST(Topology, HwlocAndSysfsAgreeHere) {
  Notes notes;
  const auto hwloc = HwlocTopology(&notes);
  if (!hwloc) GTEST_SKIP() << "built without hwloc";
  const Topology sysfs = ReadTopology(FileRoot("/"), &notes);
  if (sysfs.threads == 0) GTEST_SKIP() << "no processors in sysfs";
  EXPECT_EQ(hwloc->cpus, sysfs.cpus);
  EXPECT_EQ(hwloc->threads, sysfs.threads);
  if (hwloc->packages > 0) {
    EXPECT_EQ(hwloc->packages, sysfs.packages);
  }
  if (hwloc->cores > 0) {
    EXPECT_EQ(hwloc->cores, sysfs.cores);
  }
  if (!sysfs.numa_nodes.empty()) {
    ASSERT_EQ(hwloc->numa_nodes.size(), sysfs.numa_nodes.size());
    for (size_t i = 0; i < sysfs.numa_nodes.size(); ++i) {
      EXPECT_EQ(hwloc->numa_nodes[i].id, sysfs.numa_nodes[i].id);
      if (!sysfs.numa_nodes[i].cpus.empty()) {
        EXPECT_EQ(hwloc->numa_nodes[i].cpus, sysfs.numa_nodes[i].cpus);
      }
    }
  }
  if (!sysfs.caches.empty() && !hwloc->caches.empty()) {
    EXPECT_EQ(CacheShapes(*hwloc), CacheShapes(sysfs));
  }
}

}  // namespace
}  // namespace trine::detect
