#include "backends/vulkan/device/tuning.h"

#include "backends/vulkan/testing/device_fixtures.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine::vulkan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace ::trine::vulkan::testing;  // NOLINT: fixtures

Tuning TuningOf(const DeviceQuery& query) { return ChooseTuning(MakeDeviceCaps(query)); }

TEST(TuningTest, FollowsTheArchitecture) {
  EXPECT_EQ(TuningOf(IntelXe1()).subgroup_size, 16u);
  EXPECT_EQ(TuningOf(IntelXe1()).gemv_workgroup, 16u);
  EXPECT_EQ(TuningOf(IntelXe1()).gemv_rows, 2u);
  EXPECT_EQ(TuningOf(IntelXe2()).subgroup_size, 16u);
  EXPECT_EQ(TuningOf(AmdRdna2Apu()).subgroup_size, 32u);
  EXPECT_EQ(TuningOf(AmdRdna3Apu()).gemv_workgroup, 32u);
  EXPECT_EQ(TuningOf(NvidiaDiscrete()).subgroup_size, 32u);
  EXPECT_EQ(TuningOf(NvidiaDiscrete()).gemv_workgroup, 128u);
  EXPECT_EQ(TuningOf(NvidiaDiscrete()).gemv_rows, 2u);
  EXPECT_EQ(TuningOf(Lavapipe()).subgroup_size, 8u);
  EXPECT_EQ(TuningOf(Lavapipe()).gemv_workgroup, 8u);
}

TEST(TuningTest, AsksForNoSizeThatTheDeviceCantGive) {
  DeviceQuery query = IntelXe1();
  query.subgroup_size_features = {};
  EXPECT_EQ(TuningOf(query).subgroup_size, 0u);
  EXPECT_EQ(TuningOf(query).gemv_workgroup, 32u);
}

TEST(TuningTest, TakesIntegerDotProductsWhereTheyPay) {
  EXPECT_TRUE(TuningOf(AmdRdna2Apu()).int_dot);
  EXPECT_TRUE(TuningOf(Lavapipe()).int_dot) << "or no test would ever run that path";
  DeviceQuery slow = NvidiaDiscrete();
  slow.int_dot = {};
  EXPECT_FALSE(TuningOf(slow).int_dot);
}

TEST(TuningTest, GivesSmallGpusSmallSubmissions) {
  EXPECT_LT(TuningOf(AmdRdna3Apu()).submit_operations,
            TuningOf(NvidiaDiscrete()).submit_operations);
  EXPECT_GT(TuningOf(AmdRdna3Apu()).submit_operations, 0u);
  EXPECT_GT(TuningOf(Lavapipe()).submit_dispatches, 0u);
}

TEST(TuningTest, CanBeOverridden) {
  const DeviceCaps caps = MakeDeviceCaps(IntelXe1());
  Tuning tuning = ChooseTuning(caps);
  EXPECT_TRUE(OverrideTuning(caps, "int_dot", "0", &tuning).ok());
  EXPECT_FALSE(tuning.int_dot);
  EXPECT_TRUE(OverrideTuning(caps, "subgroup_size", "8", &tuning).ok());
  EXPECT_EQ(tuning.subgroup_size, 8u);
  EXPECT_TRUE(OverrideTuning(caps, "gemv_rows", "4", &tuning).ok());
  EXPECT_EQ(tuning.gemv_rows, 4u);
  EXPECT_TRUE(tuning.fuse);
  EXPECT_TRUE(OverrideTuning(caps, "fuse", "0", &tuning).ok());
  EXPECT_FALSE(tuning.fuse);
  EXPECT_TRUE(OverrideTuning(caps, "submit_operations", "5000000000", &tuning).ok());
  EXPECT_EQ(tuning.submit_operations, 5'000'000'000u);
}

TEST(TuningTest, RefusesOverridesThatAreNone) {
  DeviceQuery query = IntelXe1();
  query.int_dot_features = {};
  const DeviceCaps caps = MakeDeviceCaps(query);
  Tuning tuning = ChooseTuning(caps);
  const auto error = [&](const char* name, const char* value) {
    return std::string(OverrideTuning(caps, name, value, &tuning).message());
  };
  EXPECT_THAT(error("int_dot", "1"), HasSubstr("does not have it"));
  EXPECT_THAT(error("int_dot", "yes"), HasSubstr("0 or 1"));
  EXPECT_THAT(error("fuse", "2"), HasSubstr("0 or 1"));
  EXPECT_THAT(error("speed", "1"), HasSubstr("no tuning called speed"));
  EXPECT_THAT(error("gemv_rows", "0"), HasSubstr("a number from 1 to 4294967295 is needed"));
  EXPECT_THAT(error("gemv_rows", "99999999999"), HasSubstr("a number from 1 to"));
  EXPECT_THAT(error("subgroup_size", "64"), HasSubstr("8 to 32"));
  EXPECT_THAT(error("subgroup_size", "12"), HasSubstr("8 to 32"));
  EXPECT_THAT(error("gemv_workgroup", "2048"), HasSubstr("at most 1024"));
}

TEST(TuningTest, HasTheExecutorsOfTheBuild) {
  const DeviceCaps caps = MakeDeviceCaps(IntelXe1());
  Tuning tuning = ChooseTuning(caps);
  EXPECT_TRUE(HasTuning("executor"));
  EXPECT_EQ(tuning.executor, Executor::kNative);
  EXPECT_TRUE(OverrideTuning(caps, "executor", "native", &tuning).ok());
  const absl::Status kompute = OverrideTuning(caps, "executor", "kompute", &tuning);
  if (ExecutorIsBuilt(Executor::kKompute)) {
    EXPECT_TRUE(kompute.ok()) << kompute;
    EXPECT_EQ(tuning.executor, Executor::kKompute);
  } else {
    EXPECT_THAT(std::string(kompute.message()), HasSubstr("this build is without Kompute"));
    EXPECT_EQ(tuning.executor, Executor::kNative);
  }
  const absl::Status other = OverrideTuning(caps, "executor", "volk", &tuning);
  EXPECT_THAT(std::string(other.message()), HasSubstr("native or kompute"));
}

TEST(TuningTest, ChoosesMemory) {
  const DeviceCaps lavapipe = MakeDeviceCaps(Lavapipe());
  EXPECT_THAT(MemoryTypesFor(lavapipe, MemoryUse::kDevice, ~0u), ElementsAre(0));
  EXPECT_THAT(MemoryTypesFor(lavapipe, MemoryUse::kDevice, 0), IsEmpty());

  const DeviceCaps apu = MakeDeviceCaps(AmdRdna2Apu());
  EXPECT_THAT(MemoryTypesFor(apu, MemoryUse::kDevice, ~0u), ElementsAre(3, 2, 0, 1));
  EXPECT_THAT(MemoryTypesFor(apu, MemoryUse::kReadback, ~0u), ElementsAre(1, 0, 3));

  const DeviceCaps discrete = MakeDeviceCaps(NvidiaDiscrete());
  EXPECT_THAT(MemoryTypesFor(discrete, MemoryUse::kDevice, ~0u), ElementsAre(0, 3));
  EXPECT_THAT(MemoryTypesFor(discrete, MemoryUse::kUpload, ~0u), ElementsAre(1, 2, 3));
  EXPECT_THAT(MemoryTypesFor(discrete, MemoryUse::kReadback, ~0u), ElementsAre(2, 1, 3));
}

TEST(TuningTest, LeavesProtectedMemoryAlone) {
  DeviceQuery query = Lavapipe();
  query.memory.memoryTypes[0].propertyFlags |= VK_MEMORY_PROPERTY_PROTECTED_BIT;
  EXPECT_THAT(MemoryTypesFor(MakeDeviceCaps(query), MemoryUse::kDevice, ~0u), IsEmpty());
}

}  // namespace
}  // namespace trine::vulkan
