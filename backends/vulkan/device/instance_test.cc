#include "backends/vulkan/device/instance.h"

#include <stdlib.h>

#include <cstring>

#include "backends/vulkan/device/device.h"
#include "backends/vulkan/testing/device_fixtures.h"
#include "backends/vulkan/testing/fake_driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine::vulkan {
namespace {

using testing::FakeDriver;
using ::testing::HasSubstr;
using testing::Message;

absl::StatusOr<std::unique_ptr<Instance>> Open(bool allow_cpu = true, bool validate = false) {
  auto global = LoadGlobal(FakeDriver::Entry());
  if (!global.ok()) return global.status();
  InstanceOptions options;
  options.allow_cpu = allow_cpu;
  options.validate = validate;
  return Instance::Create(*global, options);
}

TEST(InstanceTest, FindsDevices) {
  FakeDriver driver({testing::IntelXe1(), testing::NvidiaDiscrete()});
  {
    auto instance = Open();
    ASSERT_TRUE(instance.ok()) << instance.status();
    ASSERT_EQ((*instance)->devices().size(), 2u);
    EXPECT_EQ((*instance)->devices()[0].caps.architecture, Architecture::kIntelXe1);
    EXPECT_EQ((*instance)->devices()[1].reason, "");
    EXPECT_EQ((*instance)->NoDeviceReason(), "");
  }
  EXPECT_EQ(driver.live, 0);
}

TEST(InstanceTest, SaysThatThereIsNoDriver) {
  FakeDriver driver({});
  driver.Fail("vkCreateInstance", VK_ERROR_INCOMPATIBLE_DRIVER);
  const auto instance = Open();
  EXPECT_TRUE(absl::IsNotFound(instance.status()));
  EXPECT_THAT(Message(instance.status()), HasSubstr("no Vulkan driver is installed"));
}

TEST(InstanceTest, SaysThatThereIsNoDevice) {
  FakeDriver driver({});
  auto instance = Open();
  ASSERT_TRUE(instance.ok()) << instance.status();
  EXPECT_THAT((*instance)->NoDeviceReason(), HasSubstr("show no device"));
}

TEST(InstanceTest, AdmitsCpuDevicesOnlyWhenAsked) {
  FakeDriver driver({testing::Lavapipe()});
  auto instance = Open(false);
  ASSERT_TRUE(instance.ok());
  EXPECT_THAT((*instance)->NoDeviceReason(), HasSubstr("TRINE_VULKAN_ALLOW_CPU=1"));
  EXPECT_THAT(Message(Device::Create(**instance, (*instance)->devices()[0]).status()),
              HasSubstr("runs on the CPU"));
  instance = Open(true);
  ASSERT_TRUE(instance.ok());
  EXPECT_EQ((*instance)->NoDeviceReason(), "");
}

TEST(InstanceTest, TakesAChipUnderItsBestDriver) {
  DeviceQuery other = testing::AmdRdna3Apu();
  other.properties12.driverID = VK_DRIVER_ID_AMD_OPEN_SOURCE;
  std::strcpy(other.properties12.driverName, "AMDVLK");
  DeviceQuery unknown = testing::IntelXe1(), unknown_too = testing::IntelXe1();
  std::memset(unknown.properties11.deviceUUID, 0, VK_UUID_SIZE);
  unknown_too.properties11 = unknown.properties11;
  FakeDriver driver({other, testing::AmdRdna3Apu(), testing::AmdRdna3Apu(), unknown, unknown_too});
  auto instance = Open();
  ASSERT_TRUE(instance.ok());
  const std::vector<FoundDevice>& devices = (*instance)->devices();
  EXPECT_THAT(devices[0].reason, HasSubstr("under AMDVLK is the same chip as"));
  EXPECT_EQ(devices[1].reason, "");
  EXPECT_THAT(devices[2].reason, HasSubstr("same chip")) << "one of two equals";
  EXPECT_EQ(devices[3].reason, "") << "no UUID is nobody's";
  EXPECT_EQ(devices[4].reason, "");
}

TEST(InstanceTest, AnUnusableTwinDoesNotHideItsChip) {
  DeviceQuery broken = testing::AmdRdna3Apu(), other = testing::AmdRdna3Apu();
  broken.features12.timelineSemaphore = VK_FALSE;
  other.properties12.driverID = VK_DRIVER_ID_AMD_OPEN_SOURCE;
  FakeDriver driver({broken, other});
  auto instance = Open();
  ASSERT_TRUE(instance.ok());
  EXPECT_THAT((*instance)->devices()[0].reason, HasSubstr("timeline semaphores"));
  EXPECT_EQ((*instance)->devices()[1].reason, "");
}

TEST(InstanceTest, ValidatesOnlyWithTheLayerThere) {
  FakeDriver driver({testing::Lavapipe()});
  EXPECT_THAT(Message(Open(true, true).status()), HasSubstr("vulkan-validationlayers"));
  driver.layers = {"VK_LAYER_KHRONOS_validation"};
  EXPECT_TRUE(Open(true, true).ok());
  driver.Fail("vkCreateDebugUtilsMessengerEXT", VK_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_TRUE(absl::IsResourceExhausted(Open(true, true).status()));
  EXPECT_EQ(driver.live, 0);
}

TEST(InstanceTest, FailuresLeaveNothingBehind) {
  FakeDriver driver({testing::Lavapipe()});
  driver.Fail("vkEnumeratePhysicalDevices", VK_ERROR_INITIALIZATION_FAILED);
  EXPECT_THAT(Message(Open().status()), HasSubstr("could not be listed"));
  driver.Fail("vkEnumerateDeviceExtensionProperties", VK_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_TRUE(absl::IsResourceExhausted(Open().status()));
  driver.version = VK_API_VERSION_1_1;
  EXPECT_THAT(Message(Open().status()), HasSubstr("older than 1.2"));
  driver.version = VK_API_VERSION_1_3;
  driver.missing = {"vkEnumeratePhysicalDevices"};
  EXPECT_FALSE(Open().ok());
  EXPECT_EQ(driver.live, 0);
}

TEST(InstanceTest, ReadsTheEnvironment) {
  setenv("TRINE_VULKAN_ALLOW_CPU", "1", 1);
  setenv("TRINE_VULKAN_VALIDATE", "0", 1);
  InstanceOptions options = InstanceOptionsFromEnvironment();
  EXPECT_TRUE(options.allow_cpu);
  EXPECT_FALSE(options.validate);
  unsetenv("TRINE_VULKAN_ALLOW_CPU");
  setenv("TRINE_VULKAN_VALIDATE", "1", 1);
  options = InstanceOptionsFromEnvironment();
  EXPECT_FALSE(options.allow_cpu);
  EXPECT_TRUE(options.validate);
  unsetenv("TRINE_VULKAN_VALIDATE");
}

TEST(DeviceTest, FailuresLeaveNothingBehind) {
  FakeDriver driver({testing::Lavapipe()});
  {
    auto instance = Open();
    ASSERT_TRUE(instance.ok());
    const FoundDevice& found = (*instance)->devices()[0];
    driver.Fail("vkCreateDevice", VK_ERROR_OUT_OF_DEVICE_MEMORY);
    EXPECT_THAT(Message(Device::Create(**instance, found).status()),
                HasSubstr("llvmpipe (LLVM 15.0.6, 256 bits) could not be opened"));
    driver.missing = {"vkQueueSubmit"};
    EXPECT_THAT(Message(Device::Create(**instance, found).status()), HasSubstr("vkQueueSubmit"));
    driver.missing.clear();
    EXPECT_TRUE(Device::Create(**instance, found).ok());
  }
  EXPECT_EQ(driver.live, 0);
}

TEST(DeviceTest, OnceLostItStaysLost) {
  FakeDriver driver({testing::Lavapipe()});
  auto instance = Open();
  ASSERT_TRUE(instance.ok());
  auto device = Device::Create(**instance, (*instance)->devices()[0]);
  ASSERT_TRUE(device.ok());
  EXPECT_TRUE((*device)->Check(VK_SUCCESS, "x").ok());
  EXPECT_TRUE(absl::IsResourceExhausted((*device)->Check(VK_ERROR_OUT_OF_DEVICE_MEMORY, "x")));
  EXPECT_TRUE((*device)->Health().ok());
  EXPECT_TRUE(absl::IsUnavailable((*device)->Check(VK_ERROR_DEVICE_LOST, "the first")));
  EXPECT_TRUE(absl::IsUnavailable((*device)->Check(VK_ERROR_DEVICE_LOST, "the second")));
  EXPECT_THAT(Message((*device)->Health()), HasSubstr("the first"));
}

TEST(DeviceTest, OneThatHangsIsLeftBehind) {
  FakeDriver driver({testing::NvidiaDiscrete()});
  auto instance = Open();
  ASSERT_TRUE(instance.ok());
  auto device = Device::Create(**instance, (*instance)->devices()[0]);
  ASSERT_TRUE(device.ok());
  EXPECT_THAT(Message((*device)->Abandon("no answer in 10 s")), HasSubstr("no answer in 10 s"));
  device->reset();
  EXPECT_EQ(driver.calls["vkDeviceWaitIdle"], 0) << "which would wait for ever";
}

TEST(DeviceTest, OneOfTheCpuIsWaitedFor) {
  FakeDriver driver({testing::Lavapipe()});
  auto instance = Open();
  ASSERT_TRUE(instance.ok());
  auto device = Device::Create(**instance, (*instance)->devices()[0]);
  ASSERT_TRUE(device.ok());
  EXPECT_TRUE(absl::IsUnavailable((*device)->Abandon("no answer in 10 s")));
  EXPECT_EQ(driver.calls["vkDeviceWaitIdle"], 1) << "its threads are this process's";
}

// With a loader of Vulkan 1.2, a device of 1.3 is treated as one of 1.2: features that became part
// of 1.3 are available through extensions only.
TEST(InstanceTest, UsesNoMoreOfADeviceThanTheLoaderHas) {
  constexpr VkStructureType kSizes =
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
  constexpr VkStructureType kDot =
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
  struct Expected {
    uint32_t loader;
    bool extensions, used, named;
  };
  for (const Expected& e : {Expected{VK_API_VERSION_1_3, false, true, false},
                            Expected{VK_API_VERSION_1_2, false, false, false},
                            Expected{VK_API_VERSION_1_2, true, true, true}}) {
    DeviceQuery query = testing::IntelXe1();
    if (e.extensions) {
      query.extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
      query.extensions.push_back(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
    }
    FakeDriver driver({query});
    driver.version = e.loader;
    auto instance = Open();
    ASSERT_TRUE(instance.ok()) << instance.status();
    EXPECT_EQ(driver.asked.contains(kSizes), e.used);
    EXPECT_EQ(driver.asked.contains(kDot), e.used);
    const FoundDevice& found = (*instance)->devices()[0];
    EXPECT_EQ(found.reason, "");
    EXPECT_EQ(found.caps.api_version, e.loader);
    EXPECT_EQ(found.caps.can_require_subgroup_size, e.used);
    EXPECT_EQ(found.caps.int_dot, e.used);
    auto device = Device::Create(**instance, found);
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ(driver.device_structs.contains(kSizes), e.used);
    EXPECT_EQ(driver.device_structs.contains(kDot), e.used);
    const auto named = [&](const char* name) { return driver.device_extensions.contains(name); };
    EXPECT_EQ(named(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME), e.named);
    EXPECT_EQ(named(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME), e.named);
  }
}

}  // namespace
}  // namespace trine::vulkan
