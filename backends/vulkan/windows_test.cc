#include "backends/vulkan/windows.h"

#include "backends/vulkan/testing/device_fixtures.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine::vulkan {
namespace {

TEST(WindowsTest, OneWhereItFits) {
  const DeviceCaps caps = MakeDeviceCaps(testing::Lavapipe());
  const auto windows = MakeWindows(caps, 4096, 100, 952);
  ASSERT_TRUE(windows.ok());
  ASSERT_EQ(windows->size(), 1u);
  EXPECT_EQ((*windows)[0].rows, 100u);
  EXPECT_EQ((*windows)[0].offset, 4096u);
  EXPECT_EQ((*windows)[0].bytes, 95200u);
  EXPECT_EQ((*windows)[0].skip_bytes, 0u);
}

// An output matrix of 151936 x 896 in Q8_0 is larger than lavapipe's 128 MiB.
TEST(WindowsTest, CutsWhatIsTooLargeAtWholeRows) {
  DeviceCaps caps = MakeDeviceCaps(testing::Lavapipe());
  caps.storage_alignment = 256;
  const uint64_t rows = 151936, row_bytes = 952, offset = 1000;
  const auto windows = MakeWindows(caps, offset, rows, row_bytes);
  ASSERT_TRUE(windows.ok());
  EXPECT_EQ(windows->size(), 2u);
  uint64_t next = 0;
  for (const Window& window : *windows) {
    EXPECT_EQ(window.first_row, next);
    EXPECT_EQ(window.offset % 256, 0u);
    EXPECT_EQ(window.offset + window.skip_bytes, offset + window.first_row * row_bytes);
    EXPECT_EQ(window.bytes, window.skip_bytes + window.rows * row_bytes);
    EXPECT_LE(window.bytes, caps.max_storage_range);
    next += window.rows;
  }
  EXPECT_EQ(next, rows);
}

TEST(WindowsTest, RefusesARowThatFitsNowhere) {
  const DeviceCaps caps = MakeDeviceCaps(testing::Lavapipe());
  const auto windows = MakeWindows(caps, 0, 2, (128 << 20) + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(windows.status()));
  EXPECT_THAT(std::string(windows.status().message()),
              ::testing::HasSubstr("larger than a binding"));
  EXPECT_TRUE(MakeWindows(caps, 0, 0, 1)->empty());
}

}  // namespace
}  // namespace trine::vulkan
