#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cpu/device.h"
#include "trine/backend.h"

namespace trine::cpu {
namespace {

using testing::HasSubstr;

// Returns all features that any level requires, except `lacking`.
std::vector<detect::SimdFeature> AllFeaturesBut(const std::string& lacking) {
  std::vector<detect::SimdFeature> features;
  for (const cpu_kernels::Level& level : cpu_kernels::Levels()) {
    for (const char* name : level.required) {
      if (name != lacking) features.push_back({name, true, true, ""});
    }
  }
  return features;
}

TEST(ChooseKernelsTest, PicksTheBestOfItself) {
  const KernelChoice best = ChooseKernels(AllFeaturesBut(""), nullptr);
  ASSERT_NE(best.level, nullptr);
  EXPECT_FALSE(best.level->on_request_only);
  EXPECT_EQ(ChooseKernels(AllFeaturesBut(""), "").level, best.level);
}

TEST(ChooseKernelsTest, FallsBackToTheReference) {
  const KernelChoice choice = ChooseKernels({}, nullptr);
  ASSERT_NE(choice.level, nullptr);
  EXPECT_STREQ(choice.level->name, "reference");
}

TEST(ChooseKernelsTest, TakesTheLevelThatIsNamed) {
  for (const cpu_kernels::Level& level : cpu_kernels::Levels()) {
    EXPECT_EQ(ChooseKernels(AllFeaturesBut(""), level.name).level, &level);
  }
}

TEST(ChooseKernelsTest, AFeatureThatIsAdvertisedAloneDoesNotCount) {
  std::vector<detect::SimdFeature> features = AllFeaturesBut("");
  for (detect::SimdFeature& f : features) f.usable = false;
  EXPECT_STREQ(ChooseKernels(features, nullptr).level->name, "reference");
}

TEST(ChooseKernelsTest, SaysWhichFeatureIsMissingAndWhatRuns) {
  for (const cpu_kernels::Level& level : cpu_kernels::Levels()) {
    if (level.required.empty()) continue;
    const char* missing = level.required.back();
    const KernelChoice choice = ChooseKernels(AllFeaturesBut(missing), level.name);
    EXPECT_EQ(choice.level, nullptr);
    EXPECT_THAT(choice.reason, HasSubstr(std::string("TRINE_CPU_ISA=") + level.name));
    EXPECT_THAT(choice.reason, HasSubstr(missing));
    EXPECT_THAT(choice.reason, HasSubstr("reference"));
    EXPECT_LT(choice.reason.size(), sizeof(trine_device_info::reason));
  }
}

TEST(ChooseKernelsTest, SaysWhichLevelsThereAre) {
  const KernelChoice choice = ChooseKernels(AllFeaturesBut(""), "avx1024");
  EXPECT_EQ(choice.level, nullptr);
  EXPECT_THAT(choice.reason, HasSubstr("TRINE_CPU_ISA=avx1024"));
  for (const cpu_kernels::Level& level : cpu_kernels::Levels()) {
    EXPECT_THAT(choice.reason, HasSubstr(level.name));
  }
}

TEST(SelfTestFailureTest, TheReferenceHasNone) {
  EXPECT_EQ(SelfTestFailure(*cpu_kernels::FindLevel("reference")), "");
}

TEST(CachesOf, WhatIsNotKnownIsGuessed) {
  const cpu_kernels::Caches guess;
  EXPECT_EQ(CachesOf({}).first_level, guess.first_level);
  EXPECT_EQ(CachesOf({}).second_level, guess.second_level);
  EXPECT_EQ(CachesOf({48 << 10, 0}).first_level, 48 << 10);
  EXPECT_EQ(CachesOf({48 << 10, 0}).second_level, guess.second_level);
  EXPECT_EQ(CachesOf({0, 2 << 20}).second_level, 2 << 20);
}

}  // namespace
}  // namespace trine::cpu
