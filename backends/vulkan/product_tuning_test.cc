#include "backends/vulkan/product_tuning.h"

#include "backends/vulkan/testing/device_fixtures.h"
#include "gtest/gtest.h"

namespace trine::vulkan {
namespace {

ProductTuning Of(const DeviceQuery& query) {
  const DeviceCaps caps = MakeDeviceCaps(query);
  return ChooseProductTuning(caps, ChooseTuning(caps));
}

// What products.h asks of a tuning, on every device.
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
    // The tile of gemm_quantized.comp: values, then scales and sums.
    const uint32_t rows = 8 * products.gemm_rows, columns = 4 * products.gemm_columns;
    const uint32_t bytes = 16 * 16 * (rows + columns + 2) + 8 * 16 * rows + 8 * 8 * columns;
    EXPECT_LE(bytes, caps.max_shared_bytes) << caps.name;
  }
}

TEST(ProductTuningTest, FillsLargeDevicesAndNotTheCpu) {
  EXPECT_GT(Of(testing::NvidiaDiscrete()).gemv_fill, Of(testing::IntelXe1()).gemv_fill);
  EXPECT_EQ(Of(testing::Lavapipe()).gemv_fill, 0u);
}

}  // namespace
}  // namespace trine::vulkan
