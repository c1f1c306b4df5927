#include "detect/cpu/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "detect/testing/fake_root.h"
#include "detect/testing/scenarios.h"

namespace trine::detect {
namespace {

using ::testing::ElementsAre;
using testing::FakeRoot;
using testing::FindScenario;
using ::testing::IsEmpty;
using ::testing::SizeIs;

CpuInfo Read(const char* scenario) {
  FakeRoot fake;
  FindScenario(scenario)->build(&fake);
  Notes notes;
  return ReadCpu(FileRoot(fake.path()), &notes);
}

TEST(Cpu, Desktop) {
  const CpuInfo cpu = Read("desktop-amd");
  EXPECT_EQ(cpu.arch, "x86-64");
  EXPECT_EQ(cpu.vendor, "AMD");
  EXPECT_EQ(cpu.simd_level, "avx512-vnni");
  EXPECT_EQ(cpu.topology.cores, 4);
  EXPECT_EQ(cpu.topology.threads, 8);
  EXPECT_EQ(cpu.topology.source, "sysfs");
  EXPECT_THAT(cpu.topology.caches, SizeIs(4));
  EXPECT_THAT(cpu.usable_cpus, SizeIs(8));
  EXPECT_THAT(cpu.core_kinds, IsEmpty());
  EXPECT_EQ(cpu.cpu_quota, std::nullopt);
}

TEST(Cpu, AmxOfAnotherMachineIsAdvertisedOnly) {
  const CpuInfo cpu = Read("bmc-server");
  EXPECT_EQ(cpu.simd_level, "avx512-vnni");
  EXPECT_FALSE(Usable(cpu.features, "amx-int8"));
  EXPECT_TRUE(Usable(cpu.features, "avx512-fp16"));
}

TEST(Cpu, HybridIntel) {
  const CpuInfo cpu = Read("laptop-hybrid-arc");
  ASSERT_THAT(cpu.core_kinds, SizeIs(2));
  EXPECT_EQ(cpu.core_kinds[0].name, "performance");
  EXPECT_THAT(cpu.core_kinds[0].cpus, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(cpu.core_kinds[1].name, "efficiency");
  EXPECT_EQ(cpu.topology.cores, 6);
}

TEST(Cpu, ArmBigLittle) {
  const CpuInfo cpu = Read("arm-mali");
  EXPECT_EQ(cpu.arch, "aarch64");
  EXPECT_EQ(cpu.vendor, "Arm");
  EXPECT_EQ(cpu.model, "Cortex-A55 + Cortex-A76");
  EXPECT_EQ(cpu.simd_level, "dotprod");
  ASSERT_THAT(cpu.core_kinds, SizeIs(2));
  EXPECT_EQ(cpu.core_kinds[0].name, "capacity 1024");
  EXPECT_THAT(cpu.core_kinds[0].cpus, ElementsAre(2, 3));
}

TEST(Cpu, AffinityNarrowsUsableCpus) {
  FakeRoot fake;
  FindScenario("desktop-amd")->build(&fake);
  fake.File("/proc/self/status", "Cpus_allowed:\tff\nCpus_allowed_list:\t2-3,64\n");
  Notes notes;
  EXPECT_THAT(ReadCpu(FileRoot(fake.path()), &notes).usable_cpus, ElementsAre(2, 3));
  fake.File("/proc/self/status", "Cpus_allowed_list:\t0-4294967295\n");
  EXPECT_THAT(ReadCpu(FileRoot(fake.path()), &notes).usable_cpus, SizeIs(8));
}

TEST(Cpu, CountsFromCpuinfoWithoutSysfs) {
  FakeRoot fake;
  fake.X86Cpuinfo(3, "GenuineIntel", "x", "lm sse2");
  Notes notes;
  const CpuInfo cpu = ReadCpu(FileRoot(fake.path()), &notes);
  EXPECT_EQ(cpu.topology.threads, 3);
  EXPECT_EQ(cpu.topology.source, "cpuinfo");
  EXPECT_THAT(cpu.usable_cpus, ElementsAre(0, 1, 2));
  EXPECT_EQ(cpu.simd_level, "baseline");
}

}  // namespace
}  // namespace trine::detect
