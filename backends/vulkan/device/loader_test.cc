#include "backends/vulkan/device/loader.h"

#include "backends/vulkan/testing/device_fixtures.h"
#include "backends/vulkan/testing/fake_driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine::vulkan {
namespace {

using testing::FakeDriver;
using ::testing::HasSubstr;

TEST(LoaderTest, FillsItsTablesFromWhatItIsGiven) {
  FakeDriver driver({testing::Lavapipe()});
  auto global = LoadGlobal(FakeDriver::Entry());
  ASSERT_TRUE(global.ok()) << global.status();
  auto instance = LoadInstance(*global, VK_NULL_HANDLE);
  ASSERT_TRUE(instance.ok()) << instance.status();
  auto device = LoadDevice(*instance, VK_NULL_HANDLE);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_NE(device->QueueSubmit, nullptr);
}

TEST(LoaderTest, NamesTheFunctionThatIsMissing) {
  FakeDriver driver({testing::Lavapipe()});
  auto global = LoadGlobal(FakeDriver::Entry());
  ASSERT_TRUE(global.ok());
  driver.missing = {"vkEnumeratePhysicalDevices", "vkWaitSemaphores", "vkCreateInstance"};
  EXPECT_THAT(std::string(LoadGlobal(FakeDriver::Entry()).status().message()),
              HasSubstr("vkCreateInstance"));
  EXPECT_THAT(std::string(LoadInstance(*global, VK_NULL_HANDLE).status().message()),
              HasSubstr("vkEnumeratePhysicalDevices"));
  driver.missing.erase("vkEnumeratePhysicalDevices");
  auto instance = LoadInstance(*global, VK_NULL_HANDLE);
  ASSERT_TRUE(instance.ok());
  EXPECT_THAT(std::string(LoadDevice(*instance, VK_NULL_HANDLE).status().message()),
              HasSubstr("vkWaitSemaphores"));
}

TEST(LoaderTest, ExtensionsNeedNotBeThere) {
  FakeDriver driver({testing::Lavapipe()});
  driver.missing = {"vkGetMemoryHostPointerPropertiesEXT", "vkCreateDebugUtilsMessengerEXT",
                    "vkDestroyDebugUtilsMessengerEXT"};
  auto global = LoadGlobal(FakeDriver::Entry());
  ASSERT_TRUE(global.ok());
  auto instance = LoadInstance(*global, VK_NULL_HANDLE);
  ASSERT_TRUE(instance.ok()) << instance.status();
  auto device = LoadDevice(*instance, VK_NULL_HANDLE);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->GetMemoryHostPointerPropertiesEXT, nullptr);
}

TEST(VkStatusTest, GivesTheAbisCodes) {
  EXPECT_TRUE(VkStatus(VK_SUCCESS, "x").ok());
  EXPECT_TRUE(absl::IsUnavailable(VkStatus(VK_ERROR_DEVICE_LOST, "x")));
  EXPECT_TRUE(absl::IsResourceExhausted(VkStatus(VK_ERROR_OUT_OF_DEVICE_MEMORY, "x")));
  EXPECT_TRUE(absl::IsDeadlineExceeded(VkStatus(VK_TIMEOUT, "x")));
  EXPECT_TRUE(absl::IsNotFound(VkStatus(VK_ERROR_INCOMPATIBLE_DRIVER, "x")));
  EXPECT_TRUE(absl::IsInternal(VkStatus(static_cast<VkResult>(-77), "x")));
  EXPECT_EQ(VkStatus(static_cast<VkResult>(-77), "a buffer could not be made").message(),
            "a buffer could not be made: the driver says VkResult -77");
}

}  // namespace
}  // namespace trine::vulkan
