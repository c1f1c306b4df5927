#include "runtime/placement/worker_cpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Four cores of two threads each, as Linux numbers them.
detect::CpuInfo FourCores() {
  detect::CpuInfo cpu;
  cpu.topology.cores = 4;
  cpu.topology.core_cpus = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  cpu.usable_cpus = {0, 1, 2, 3, 4, 5, 6, 7};
  return cpu;
}

TEST(WorkerCpusTest, OneOfEachCoreFirst) {
  EXPECT_THAT(WorkerCpus(FourCores(), 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(WorkerCpus(FourCores(), 6), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(WorkerCpusTest, OnlyWhereTheProcessMayRun) {
  detect::CpuInfo cpu = FourCores();
  cpu.usable_cpus = {2, 3, 6};
  EXPECT_THAT(WorkerCpus(cpu, 3), ElementsAre(2, 3, 6));
  EXPECT_EQ(UsableProcessors(cpu), 3u);
}

TEST(WorkerCpusTest, FastCoresFirst) {
  detect::CpuInfo cpu = FourCores();
  cpu.topology.core_cpus = {{0}, {1}, {2, 3}};
  cpu.usable_cpus = {0, 1, 2, 3};
  cpu.core_kinds = {{"performance", {2, 3}}, {"efficiency", {0, 1}}};
  EXPECT_THAT(WorkerCpus(cpu, 3), ElementsAre(2, 0, 1));
}

TEST(WorkerCpusTest, NotBoundWhereItWouldHurt) {
  detect::CpuInfo cpu = FourCores();
  EXPECT_THAT(WorkerCpus(cpu, 1), IsEmpty()) << "the caller is never moved";
  EXPECT_THAT(WorkerCpus(cpu, 3), IsEmpty()) << "another team may be there, and a core free";
  EXPECT_THAT(WorkerCpus(cpu, 9), IsEmpty()) << "more than there is room for";
  cpu.cpu_quota = 2.5;
  EXPECT_THAT(WorkerCpus(cpu, 4), IsEmpty()) << "the scheduler decides who gets the time";
  EXPECT_EQ(UsableProcessors(cpu), 2u);
  cpu = FourCores();
  cpu.topology.core_cpus.clear();
  EXPECT_THAT(WorkerCpus(cpu, 4), IsEmpty()) << "cores not known";
}

}  // namespace
}  // namespace trine
