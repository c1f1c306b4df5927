#include "backends/vulkan/device/tuning.h"
#include "backends/vulkan/testing/device_fixtures.h"
#include "gtest/gtest.h"

namespace trine::vulkan {
namespace {

ProductTuning Of(const DeviceQuery& query) {
  const DeviceCaps caps = MakeDeviceCaps(query);
  return ChooseProductTuning(caps, ChooseTuning(caps));
}

// Checks on every device what products.h requires of a tuning.
TEST(ProductTuningTest, IsOneThatTheShadersTake) {
  for (const DeviceQuery& query :
       {testing::IntelXe1(), testing::IntelXe2(), testing::AmdRdna2Apu(), testing::AmdRdna3Apu(),
        testing::NvidiaDiscrete(), testing::Lavapipe()}) {
    const DeviceCaps caps = MakeDeviceCaps(query);
    const ProductTuning products = Of(query);
    EXPECT_EQ(products.gemv_workgroup % 32, 0u) << caps.name;
    EXPECT_LE(products.gemv_workgroup, caps.max_workgroup_invocations) << caps.name;
    EXPECT_TRUE(products.gemv_rows == 1 || products.gemv_rows == 2 || products.gemv_rows == 4);
    EXPECT_EQ(products.int_dot, ChooseTuning(caps).int_dot);
    EXPECT_LE(GemmSharedBytes(products), caps.max_shared_bytes) << caps.name;
    EXPECT_LE(GemvSharedBytes(products), caps.max_shared_bytes) << caps.name;
  }
}

TEST(ProductTuningTest, TilesFitSmallSharedMemory) {
  DeviceCaps caps = MakeDeviceCaps(testing::NvidiaDiscrete());
  Tuning tuning = ChooseTuning(caps);
  EXPECT_EQ(ChooseProductTuning(caps, tuning).gemm_rows, 4u);
  EXPECT_EQ(ChooseProductTuning(caps, tuning).gemm_columns, 8u);
  tuning.gemv_workgroup = 1024;
  for (const uint32_t bytes : {16384u, 12000u, 8192u, 6000u}) {
    caps.max_shared_bytes = bytes;
    const ProductTuning products = ChooseProductTuning(caps, tuning);
    EXPECT_LE(GemmSharedBytes(products), bytes);
    EXPECT_LE(GemvSharedBytes(products), bytes);
    EXPECT_GE(products.gemm_rows, 1u);
    EXPECT_GE(products.gemm_columns, 1u);
    EXPECT_EQ(products.gemv_workgroup % 32, 0u);
  }
  // Less than any device has: the tuning becomes the smallest, and the ops must refuse.
  caps.max_shared_bytes = 1024;
  const ProductTuning least = ChooseProductTuning(caps, tuning);
  EXPECT_EQ(least.gemm_rows * least.gemm_columns, 1u);
  EXPECT_EQ(least.gemv_workgroup, 32u);
  EXPECT_GT(GemmSharedBytes(least), 1024u);
}

TEST(ProductTuningTest, RequiresOnlySubgroupsThatMakeUpAWorkgroup) {
  DeviceCaps caps = MakeDeviceCaps(testing::IntelXe1());
  Tuning tuning = ChooseTuning(caps);
  EXPECT_EQ(ChooseProductTuning(caps, tuning).gemv_subgroup, 16u);
  for (const uint32_t size : {0u, 8u, 32u}) {
    tuning.subgroup_size = size;
    EXPECT_EQ(ChooseProductTuning(caps, tuning).gemv_subgroup, size);
  }
  tuning.subgroup_size = 128;  // Adreno's
  EXPECT_EQ(ChooseProductTuning(caps, tuning).gemv_workgroup, 128u);
  EXPECT_EQ(ChooseProductTuning(caps, tuning).gemv_subgroup, 128u);
  tuning.subgroup_size = 8;
  caps.max_workgroup_subgroups = 4;
  EXPECT_EQ(ChooseProductTuning(caps, tuning).gemv_subgroup, 0u) << "64 invocations are 8 of these";
}

TEST(ProductTuningTest, FillsLargeDevicesAndNotTheCpu) {
  EXPECT_GT(Of(testing::NvidiaDiscrete()).gemv_fill, Of(testing::IntelXe1()).gemv_fill);
  EXPECT_EQ(Of(testing::NvidiaDiscrete()).gemv_lanes, 32u);
  EXPECT_EQ(Of(testing::Lavapipe()).gemv_fill, 0u);
}

}  // namespace
}  // namespace trine::vulkan
