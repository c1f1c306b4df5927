#include "detect/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "detect/testing/fake_root.h"
#include "detect/testing/scenarios.h"

namespace trine::detect {
namespace {

using testing::FakeRoot;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Scenario;
using testing::Scenarios;

class EveryScenario : public ::testing::TestWithParam<Scenario> {};

TEST_P(EveryScenario, HasItsTier) {
  FakeRoot fake;
  GetParam().build(&fake);
  const Machine machine = DetectMachine({fake.path()});
  EXPECT_STREQ(ComputeTierName(machine.tier), GetParam().tier);
}

INSTANTIATE_TEST_SUITE_P(Machines, EveryScenario, ::testing::ValuesIn(Scenarios()),
                         [](const ::testing::TestParamInfo<Scenario>& info) {
                           std::string name = info.param.name;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(Machine, NoSuchRoot) {
  const Machine machine = DetectMachine({"/no/such/folder"});
  EXPECT_EQ(machine.tier, ComputeTier::kCpuOnly);
  EXPECT_THAT(machine.notes, Not(IsEmpty()));
  EXPECT_EQ(machine.cpu.topology.threads, 0);
}

TEST(Machine, RootThatIsAFile) {
  FakeRoot fake;
  fake.File("/file", "x");
  EXPECT_THAT(DetectMachine({fake.path() + "/file"}).notes, Not(IsEmpty()));
}

TEST(Machine, EmptyRootKnowsNothingOfTheRunningMachine) {
  FakeRoot fake;
  const Machine machine = DetectMachine({fake.path()});
  EXPECT_EQ(machine.cpu.arch, "");
  EXPECT_THAT(machine.cpu.features, IsEmpty());
  EXPECT_EQ(machine.memory.total_bytes, 0u);
  EXPECT_THAT(machine.gpus, IsEmpty());
  EXPECT_THAT(machine.notes, Not(IsEmpty()));
}

TEST(Machine, TierOnlyCountsWhatCounts) {
  GpuInfo igpu, dgpu, other;
  igpu.kind = GpuKind::kIntegrated;
  dgpu.kind = GpuKind::kDiscrete;
  igpu.counted = dgpu.counted = other.counted = true;
  EXPECT_EQ(SummariseTier({}), ComputeTier::kCpuOnly);
  EXPECT_EQ(SummariseTier({other}), ComputeTier::kCpuOnly);
  EXPECT_EQ(SummariseTier({igpu}), ComputeTier::kCpuIgpu);
  EXPECT_EQ(SummariseTier({dgpu, dgpu}), ComputeTier::kCpuDgpu);
  EXPECT_EQ(SummariseTier({dgpu, igpu}), ComputeTier::kCpuIgpuDgpu);
  dgpu.counted = false;
  EXPECT_EQ(SummariseTier({dgpu, igpu}), ComputeTier::kCpuIgpu);
}

TEST(Machine, TheRunningOneIsKnown) {
  const Machine machine = DetectMachine();
  EXPECT_GT(machine.cpu.topology.threads, 0);
  EXPECT_THAT(machine.cpu.usable_cpus, Not(IsEmpty()));
#if defined(__x86_64__) || defined(__aarch64__)
  EXPECT_FALSE(machine.cpu.arch.empty());
  EXPECT_THAT(machine.cpu.features, Not(IsEmpty()));
#endif
#if defined(__aarch64__)
  EXPECT_NE(machine.cpu.simd_level, "baseline");
#endif
  EXPECT_GT(machine.memory.total_bytes, 0u);
  EXPECT_LE(machine.memory.total_bytes, machine.memory.physical_bytes);
  EXPECT_LE(machine.memory.available_bytes, machine.memory.total_bytes);
}

TEST(DetectProcessorTest, SaysWhatTheWholeMachineSays) {
  const ProcessorInfo processor = DetectProcessor();
  const Machine machine = DetectMachine();
  EXPECT_EQ(processor.arch, machine.cpu.arch);
  EXPECT_EQ(processor.vendor, machine.cpu.vendor);
  EXPECT_EQ(processor.model, machine.cpu.model);
  EXPECT_EQ(processor.simd_level, machine.cpu.simd_level);
  ASSERT_EQ(processor.features.size(), machine.cpu.features.size());
  for (size_t i = 0; i < processor.features.size(); ++i) {
    EXPECT_EQ(processor.features[i].name, machine.cpu.features[i].name);
    EXPECT_EQ(processor.features[i].usable, machine.cpu.features[i].usable);
  }
}

}  // namespace
}  // namespace trine::detect
