#include "detect/cpu/cpuinfo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trine::detect {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Cpuinfo, X86) {
  const Cpuinfo info = ParseCpuinfo(
      "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\nflags\t\t: lm avx2 fma\n\n"
      "processor\t: 1\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\nflags\t\t: lm avx2 fma\n");
  EXPECT_EQ(info.arch, "x86-64");
  EXPECT_EQ(info.vendor, "Intel");
  EXPECT_EQ(info.model, "Xeon");
  EXPECT_EQ(info.processors, 2);
  EXPECT_THAT(info.flags, ElementsAre("avx2", "fma", "lm"));
}

TEST(Cpuinfo, OnlyFlagsOfAllProcessorsCount) {
  const Cpuinfo info = ParseCpuinfo("flags : lm avx2 avx512f\nflags : lm avx2\n");
  EXPECT_THAT(info.flags, ElementsAre("avx2", "lm"));
}

TEST(Cpuinfo, ArmWithTwoKindsOfCore) {
  const Cpuinfo info = ParseCpuinfo(
      "processor : 0\nFeatures : fp asimd asimddp\nCPU implementer : 0x41\nCPU part : 0xd05\n"
      "processor : 1\nFeatures : fp asimd asimddp\nCPU implementer : 0x41\nCPU part : 0xd0b\n"
      "processor : 2\nFeatures : fp asimd asimddp\nCPU implementer : 0x41\nCPU part : 0xd0b\n");
  EXPECT_EQ(info.arch, "aarch64");
  EXPECT_EQ(info.processors, 3);
  EXPECT_THAT(info.arm_parts, ElementsAre(Pair(0x41, 0xd05), Pair(0x41, 0xd0b)));
}

TEST(Cpuinfo, OtherArchitectures) {
  EXPECT_EQ(ParseCpuinfo("flags : fpu sse2\n").arch, "x86");
  EXPECT_EQ(ParseCpuinfo("Features : half thumb neon\n").arch, "arm");
  EXPECT_EQ(ParseCpuinfo("isa : rv64imafdc\n").arch, "riscv64");
  EXPECT_EQ(ParseCpuinfo("cpu : POWER9, altivec supported\n").arch, "ppc64");
}

TEST(Cpuinfo, GarbageIsNothing) {
  const Cpuinfo info = ParseCpuinfo(std::string_view(":\n\0:\xff\n::::\nprocessor: x\n", 24));
  EXPECT_EQ(info.arch, "");
  EXPECT_EQ(info.processors, 0);
  EXPECT_THAT(info.flags, IsEmpty());
  EXPECT_THAT(ParseCpuinfo("CPU implementer : 0x141\nCPU part : 0xd05\n").arm_parts, IsEmpty());
}

}  // namespace
}  // namespace trine::detect
