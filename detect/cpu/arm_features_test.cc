#include <gtest/gtest.h>

#include "detect/cpu/cpuinfo.h"

namespace trine::detect {
namespace {

constexpr uint64_t kAsimd = 1u << 1, kAsimdHp = 1u << 10, kAsimdDp = 1u << 20, kSve = 1u << 22;
constexpr uint64_t kAsimdFhm = 1u << 23;
constexpr uint64_t kSve2 = 1u << 1, kI8mm = 1u << 13, kBf16 = 1u << 14;

TEST(ArmFeatures, LevelsIncludeTheOnesBefore) {
  const auto level = [](uint64_t hwcap, uint64_t hwcap2) {
    return ArmSimdLevel(ArmFeaturesFromHwcap(hwcap, hwcap2));
  };
  EXPECT_EQ(level(0, 0), "baseline");
  EXPECT_EQ(level(kAsimd, 0), "neon");
  EXPECT_EQ(level(kAsimd | kAsimdDp, 0), "dotprod");         // Neoverse-N1
  EXPECT_EQ(level(kAsimd | kAsimdDp, kI8mm), "i8mm");        // M2
  EXPECT_EQ(level(kAsimd | kAsimdDp | kSve, kI8mm), "sve");  // Neoverse-V1
  EXPECT_EQ(level(kAsimd | kAsimdDp | kSve, kI8mm | kSve2), "sve2");
  EXPECT_EQ(level(kAsimd | kSve, 0), "neon") << "A64FX has no dot product";
}

TEST(ArmFeatures, FlagsAndWordsAgree) {
  const auto words = ArmFeaturesFromHwcap(kAsimd | kAsimdHp | kAsimdDp | kAsimdFhm, kI8mm | kBf16);
  const auto flags =
      ArmFeaturesFromFlags({"asimd", "asimddp", "asimdfhm", "asimdhp", "bf16", "i8mm"});
  ASSERT_EQ(words.size(), flags.size());
  for (size_t i = 0; i < words.size(); ++i) {
    EXPECT_EQ(words[i].name, flags[i].name);
    EXPECT_EQ(words[i].usable, flags[i].usable) << words[i].name;
  }
  EXPECT_TRUE(Usable(words, "fp16"));
  EXPECT_TRUE(Usable(words, "fp16fml"));
  EXPECT_FALSE(Usable(ArmFeaturesFromHwcap(kAsimd | kAsimdHp, 0), "fp16fml"));
  EXPECT_FALSE(Usable(words, "sve"));
}

TEST(ArmNames, KnownAndUnknownParts) {
  EXPECT_EQ(ArmPartName(0x41, 0xd0c), "Neoverse-N1");
  EXPECT_EQ(ArmPartName(0x41, 0xfff), "Arm part 0xfff");
  EXPECT_EQ(ArmPartName(0xee, 0x001), "ARM part 0x001");
  EXPECT_EQ(ArmVendorName(0x61), "Apple");
  EXPECT_EQ(ArmModelName({{0x41, 0xd05}, {0x41, 0xd0b}}), "Cortex-A55 + Cortex-A76");
}

}  // namespace
}  // namespace trine::detect
