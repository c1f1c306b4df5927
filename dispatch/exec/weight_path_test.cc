#include <cstdio>

#include "dispatch/exec/segment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

trine_device_info Info(uint32_t flags, uint32_t alignment, uint32_t imports,
                       const char* refusal = "") {
  trine_device_info info{};
  info.flags = flags;
  info.import_alignment = alignment;
  info.imports = imports;
  std::snprintf(info.import_refusal, sizeof(info.import_refusal), "%s", refusal);
  return info;
}

constexpr uint32_t kUnified = TRINE_DEVICE_UNIFIED_MEMORY, kTried = TRINE_IMPORTS_TRIED,
                   kWritable = TRINE_IMPORTS_WRITABLE, kReadOnly = TRINE_IMPORTS_READ_ONLY;

TEST(WeightPathTest, TheBestThatIsTaken) {
  EXPECT_EQ(ExpectedWeightPath(Info(kUnified, 4096, kTried | kWritable | kReadOnly)),
            WeightPath::kFile);
  EXPECT_EQ(ExpectedWeightPath(Info(kUnified, 4096, kTried | kReadOnly)), WeightPath::kFile);
  EXPECT_EQ(ExpectedWeightPath(Info(kUnified, 4096, kTried | kWritable)), WeightPath::kArena);
  EXPECT_EQ(ExpectedWeightPath(Info(kUnified, 4096, kTried)), WeightPath::kCopy);
  EXPECT_EQ(ExpectedWeightPath(Info(0, 0, 0)), WeightPath::kCopy);
}

TEST(WeightPathTest, WhatADeviceWithMemoryOfItsOwnImportsIsNoPlaceForWeights) {
  const trine_device_info info = Info(0, 64, kTried | kWritable | kReadOnly);
  EXPECT_FALSE(MayImport(info, true));
  EXPECT_FALSE(MayImport(info, false));
  EXPECT_EQ(ExpectedWeightPath(info), WeightPath::kCopy);
  EXPECT_EQ(DescribeWeightPath(info), "copied to the device's own memory");
}

TEST(WeightPathTest, WhatNobodyTriedIsTried) {
  const trine_device_info old = Info(kUnified, 4096, 0);
  EXPECT_EQ(ExpectedWeightPath(old), WeightPath::kFile);
  EXPECT_TRUE(MayImport(old, true));
  EXPECT_TRUE(MayImport(old, false));
  EXPECT_FALSE(MayImport(Info(kUnified, 0, kTried | kReadOnly), true)) << "no alignment, no import";
}

TEST(WeightPathTest, FilesThatBeginBetweenTheDevicesMultiplesAreNotTried) {
  constexpr uint32_t kCoarse = 1u << 20;  // more than any page
  for (const uint32_t imports : {0u, kTried | kWritable | kReadOnly}) {
    const trine_device_info info = Info(kUnified, kCoarse, imports);
    EXPECT_FALSE(MayImport(info, true));
    EXPECT_TRUE(MayImport(info, false));
    EXPECT_EQ(ExpectedWeightPath(info), WeightPath::kArena);
    EXPECT_THAT(ImportRefusal(info), HasSubstr("mapped files: they begin at multiples of"));
    EXPECT_THAT(ImportRefusal(info), HasSubstr("imports at multiples of 1048576"));
    EXPECT_THAT(DescribeWeightPath(info), HasSubstr("(mapped files: they begin"));
  }
  EXPECT_EQ(ImportRefusal(Info(kUnified, kCoarse, kTried | kWritable, "mapped files: no")),
            "mapped files: no")
      << "what the driver said is enough";
  EXPECT_EQ(ImportRefusal(Info(kUnified, 0, 0)), "");
}

TEST(WeightPathTest, WordsSayWhatWasRefused) {
  EXPECT_EQ(DescribeWeightPath(Info(kUnified, 4096, kTried | kWritable | kReadOnly)),
            "read in the mapped file's own pages");
  EXPECT_EQ(DescribeWeightPath(Info(kUnified, 4096, kTried | kWritable, "mapped files: no")),
            "read in memory shared with the CPU, filled from the file (mapped files: no)");
  EXPECT_EQ(DescribeWeightPath(Info(kUnified, 4096, kTried, "memory: no; mapped files: no")),
            "copied (memory: no; mapped files: no)");
  EXPECT_EQ(DescribeWeightPath(Info(kUnified, 0, 0)), "copied: the device does not import memory");
  EXPECT_EQ(DescribeWeightPath(Info(0, 0, 0)), "copied to the device's own memory");
}

}  // namespace
}  // namespace trine
