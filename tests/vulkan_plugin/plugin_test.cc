// Tests the plugin's table if there is nothing to open, and what it reports of devices.
#include <stdlib.h>

#include <cstdio>
#include <memory>

#include "backends/vulkan/backend.h"
#include "backends/vulkan/testing/device_fixtures.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/vulkan_plugin/plugin_session.h"

namespace trine::vulkan {
namespace {

using ::testing::ElementsAre;
using testing::FakeDriver;
using testing::FakeHost;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::Table;

class PluginTest : public ::testing::Test {
 protected:
  PluginTest() {
    testing::UseFakeDriver();
    unsetenv("TRINE_VULKAN_TUNING");
    unsetenv("TRINE_VULKAN_ALLOW_CPU");
  }
  ~PluginTest() override {
    Close();
    unsetenv("TRINE_VULKAN_TUNING");
  }

  FakeDriver& Use(std::vector<DeviceQuery> devices) {
    driver_ = std::make_unique<FakeDriver>(std::move(devices));
    driver_->budget = uint64_t{1} << 33;
    return *driver_;
  }
  trine_status Open(const char* options = "") {
    Close();
    host_.logs.clear();
    return Table().open(host_.host(), options, &backend_, &err_);
  }
  void Close() {
    if (backend_ != nullptr) Table().close(backend_);
    backend_ = nullptr;
    err_ = {};
  }
  trine_device_info Info(uint32_t index) {
    trine_device_info info{};
    info.struct_size = sizeof(info);
    EXPECT_EQ(Table().device_info(backend_, index, &info, &err_), TRINE_OK) << err_.message;
    return info;
  }

  std::unique_ptr<FakeDriver> driver_;
  FakeHost host_;
  trine_backend* backend_ = nullptr;
  trine_error err_{};
};

TEST_F(PluginTest, SpeaksItsOwnMajorOnly) {
  EXPECT_NE(trine_plugin_query(TRINE_ABI_VERSION), nullptr);
  EXPECT_EQ(trine_plugin_query((TRINE_ABI_MAJOR + 1) << 16), nullptr);
  EXPECT_STREQ(Table().name, "vulkan");
}

TEST_F(PluginTest, WithoutVulkanThereAreNoDevices) {
  FindVulkanBy([]() -> absl::StatusOr<GlobalTable> {
    return absl::NotFoundError("Vulkan is not installed");
  });
  ASSERT_EQ(Open(), TRINE_OK);
  EXPECT_EQ(Table().device_count(backend_), 0u);
  EXPECT_THAT(host_.logs, ElementsAre(HasSubstr("Vulkan is not installed")));
}

TEST_F(PluginTest, WithoutADriverThereAreNoDevices) {
  FakeDriver& driver = Use({});
  driver.Fail("vkCreateInstance", VK_ERROR_INCOMPATIBLE_DRIVER);
  ASSERT_EQ(Open(), TRINE_OK);
  EXPECT_EQ(Table().device_count(backend_), 0u);
  EXPECT_THAT(host_.logs, ElementsAre(HasSubstr("no Vulkan driver is installed")));
  Close();
  EXPECT_EQ(driver.live, 0);
}

TEST_F(PluginTest, DriversWithoutADeviceAreSaidToBe) {
  FakeDriver& driver = Use({});
  ASSERT_EQ(Open(), TRINE_OK);
  EXPECT_EQ(Table().device_count(backend_), 0u);
  EXPECT_THAT(host_.logs, ElementsAre(HasSubstr("show no device")));
  trine_device_info info{};
  info.struct_size = sizeof(info);
  trine_device* device = nullptr;
  EXPECT_EQ(Table().device_info(backend_, 0, &info, &err_), TRINE_NOT_FOUND);
  EXPECT_THAT(err_.message, HasSubstr("no such device"));
  EXPECT_EQ(Table().device_open(backend_, 0, &device, &err_), TRINE_NOT_FOUND);
  EXPECT_EQ(device, nullptr);
  Close();
  EXPECT_EQ(driver.live, 0);
}

TEST_F(PluginTest, AnyFailureOfTheInstanceLeavesNoDevices) {
  FakeDriver& driver = Use({testing::IntelXe1()});
  for (const char* function :
       {"vkEnumerateInstanceVersion", "vkCreateInstance", "vkEnumeratePhysicalDevices",
        "vkEnumerateDeviceExtensionProperties"}) {
    driver.Fail(function, VK_ERROR_OUT_OF_HOST_MEMORY);
    ASSERT_EQ(Open(), TRINE_OK) << function;
    EXPECT_EQ(Table().device_count(backend_), 0u) << function;
    ASSERT_EQ(host_.logs.size(), 1u) << function;
    EXPECT_NE(host_.logs[0], "") << function;
    Close();
    EXPECT_EQ(driver.live, 0) << function;
  }
  driver.missing.insert("vkCreateDevice");
  ASSERT_EQ(Open(), TRINE_OK);
  EXPECT_EQ(Table().device_count(backend_), 0u);
  EXPECT_THAT(host_.logs, ElementsAre(HasSubstr("vkCreateDevice")));
  Close();
  EXPECT_EQ(driver.live, 0);
}

TEST_F(PluginTest, UnknownOptionsAreRefusedByName) {
  Use({testing::IntelXe1()});
  EXPECT_EQ(Open("colour=red"), TRINE_INVALID_ARGUMENT);
  EXPECT_THAT(err_.message, HasSubstr("colour"));
  EXPECT_EQ(backend_, nullptr);
  setenv("TRINE_VULKAN_TUNING", "colour=green", 1);
  EXPECT_EQ(Open(), TRINE_INVALID_ARGUMENT);
  EXPECT_THAT(err_.message, HasSubstr("colour"));
}

TEST_F(PluginTest, OptionsHoldAgainstTheEnvironment) {
  Use({testing::IntelXe1()});
  setenv("TRINE_VULKAN_TUNING", "elementwise_workgroup=64", 1);
  ASSERT_EQ(Open("elementwise_workgroup=128;timeout_ms=9"), TRINE_OK) << err_.message;
  EXPECT_EQ(backend_->options.timeout, std::chrono::milliseconds(9));
  EXPECT_EQ(backend_->options.tuning.back().second, "128");
}

TEST_F(PluginTest, TuningsThatADeviceDoesNotHaveFailItsOpening) {
  Use({testing::NvidiaDiscrete()});
  ASSERT_EQ(Open("subgroup_size=64"), TRINE_OK) << err_.message;
  EXPECT_EQ(Info(0).numerics, static_cast<uint32_t>(TRINE_NUMERICS_FAST));
  trine_device* device = nullptr;
  EXPECT_EQ(Table().device_open(backend_, 0, &device, &err_), TRINE_INVALID_ARGUMENT);
  EXPECT_THAT(err_.message, HasSubstr("subgroup_size=64"));
  EXPECT_EQ(device, nullptr);
}

TEST_F(PluginTest, DescribesDevices) {
  FakeDriver& driver = Use({testing::IntelXe1(), testing::NvidiaDiscrete(), testing::Lavapipe()});
  ASSERT_EQ(Open(), TRINE_OK);
  ASSERT_EQ(Table().device_count(backend_), 3u);
  const trine_device_info xe = Info(0), nvidia = Info(1), lavapipe = Info(2);
  EXPECT_EQ(xe.tier, static_cast<uint32_t>(TRINE_TIER_IGPU));
  EXPECT_EQ(xe.flags, static_cast<uint32_t>(TRINE_DEVICE_UNIFIED_MEMORY | TRINE_DEVICE_ASYNC));
  EXPECT_STREQ(xe.memory_pool, "system");
  EXPECT_EQ(xe.buffer_alignment, 64u);
  EXPECT_EQ(xe.import_alignment, 4096u);
  EXPECT_EQ(nvidia.tier, static_cast<uint32_t>(TRINE_TIER_DGPU));
  EXPECT_EQ(nvidia.flags, static_cast<uint32_t>(TRINE_DEVICE_ASYNC));
  EXPECT_THAT(nvidia.memory_pool, HasSubstr("vulkan-"));
  EXPECT_NE(lavapipe.flags & TRINE_DEVICE_UNUSABLE, 0u);
  EXPECT_THAT(lavapipe.reason, HasSubstr("TRINE_VULKAN_ALLOW_CPU=1"));
  trine_device* device = nullptr;
  EXPECT_EQ(Table().device_open(backend_, 2, &device, &err_), TRINE_FAILED_PRECONDITION);
  EXPECT_THAT(err_.message, HasSubstr("TRINE_VULKAN_ALLOW_CPU=1"));
  Close();
  EXPECT_EQ(driver.live, 0);
}

TEST_F(PluginTest, FreeMemoryIsTheDriversBudget) {
  FakeDriver& driver = Use({testing::IntelXe1()});
  ASSERT_EQ(Open(), TRINE_OK);
  driver.budget = 3000;
  driver.usage = 1000;
  EXPECT_EQ(Info(0).memory_free, 2000u);
  driver.usage = 4000;
  EXPECT_EQ(Info(0).memory_free, 0u);
  driver.budget = uint64_t{1} << 62;
  EXPECT_EQ(Info(0).memory_free, Info(0).memory_total);
}

TEST_F(PluginTest, WithoutABudgetWhatIsTakenIsNotFree) {
  DeviceQuery query = testing::IntelXe1();
  std::erase(query.extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  Use({query});
  ASSERT_EQ(Open(), TRINE_OK);
  const uint64_t total = Info(0).memory_total;
  EXPECT_EQ(Info(0).memory_free, total);
  trine_device* device = nullptr;
  ASSERT_EQ(Table().device_open(backend_, 0, &device, &err_), TRINE_OK) << err_.message;
  trine_buffer* buffer = nullptr;
  constexpr uint64_t kBytes = uint64_t{100} << 20;
  ASSERT_EQ(testing::Alloc(device, kBytes, &buffer, &err_), TRINE_OK) << err_.message;
  EXPECT_EQ(Info(0).memory_free, total - kBytes);
  Table().buffer_free(buffer);
  EXPECT_EQ(Info(0).memory_free, total);
  Table().device_close(device);
}

TEST_F(PluginTest, ADeviceThatComputesWrongIsNotExact) {
  Use({testing::IntelXe1()});
  ASSERT_EQ(Open(), TRINE_OK);
  EXPECT_EQ(Info(0).numerics, static_cast<uint32_t>(TRINE_NUMERICS_FAST));
  EXPECT_EQ(Info(0).numerics, static_cast<uint32_t>(TRINE_NUMERICS_FAST));
  EXPECT_THAT(host_.logs, ElementsAre(HasSubstr("fails its self-test (matmul)"))) << "once";
}

TEST_F(PluginTest, ADeviceThatCouldNotBeTestedMayBeTestedLater) {
  FakeDriver& driver = Use({testing::IntelXe1()});
  ASSERT_EQ(Open(), TRINE_OK);
  driver.Fail("vkCreateDevice", VK_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(Info(0).numerics, static_cast<uint32_t>(TRINE_NUMERICS_FAST));
  Info(0);
  EXPECT_THAT(host_.logs, ElementsAre(HasSubstr("could not be tested"),
                                      HasSubstr("fails its self-test (matmul)")));
}

TEST_F(PluginTest, AProcessTestsADeviceOnce) {
  FakeDriver& driver = Use({testing::IntelXe1()});
  ASSERT_EQ(Open(), TRINE_OK);
  Info(0);
  const int opened = driver.calls["vkCreateDevice"];
  EXPECT_EQ(opened, 1);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(Open(), TRINE_OK);
    EXPECT_EQ(Info(0).numerics, static_cast<uint32_t>(TRINE_NUMERICS_FAST));
    EXPECT_THAT(host_.logs, ElementsAre(HasSubstr("fails its self-test"))) << "each host is told";
  }
  EXPECT_EQ(driver.calls["vkCreateDevice"], opened);
  ASSERT_EQ(Open("int_dot=0"), TRINE_OK);
  Info(0);
  EXPECT_EQ(driver.calls["vkCreateDevice"], opened + 1) << "used in another way";
}

constexpr char kPointers[] = "vkGetMemoryHostPointerPropertiesEXT";
constexpr uint32_t kTried = TRINE_IMPORTS_TRIED, kWritable = TRINE_IMPORTS_WRITABLE,
                   kReadOnly = TRINE_IMPORTS_READ_ONLY;

TEST_F(PluginTest, SaysWhatItImports) {
  Use({testing::IntelXe1(), testing::NvidiaDiscrete()});
  ASSERT_EQ(Open(), TRINE_OK);
  EXPECT_EQ(Info(0).imports, kTried | kWritable | kReadOnly);
  EXPECT_STREQ(Info(0).import_refusal, "");
  EXPECT_EQ(Info(1).imports, 0u) << "memory of its own";
  EXPECT_EQ(Info(1).import_alignment, 0u);
}

TEST_F(PluginTest, SaysWhatItsDriverDoesNotImport) {
  FakeDriver& driver = Use({testing::IntelXe1()});
  ASSERT_EQ(Open(), TRINE_OK);
  // Fail the second kind that is tried, then both.
  driver.Fail(kPointers, VK_ERROR_INVALID_EXTERNAL_HANDLE, 2);
  EXPECT_EQ(Info(0).imports, kTried | kWritable);
  EXPECT_STREQ(Info(0).import_refusal,
               "mapped files: the driver says VK_ERROR_INVALID_EXTERNAL_HANDLE");
  testing::UseFakeDriver();
  driver.Fail(kPointers, VK_ERROR_INVALID_EXTERNAL_HANDLE, 1, true);
  ASSERT_EQ(Open(), TRINE_OK);
  EXPECT_EQ(Info(0).imports, kTried);
  EXPECT_STREQ(Info(0).import_refusal,
               "memory and mapped files: the driver says VK_ERROR_INVALID_EXTERNAL_HANDLE");
}

TEST_F(PluginTest, ImportsNoMoreThanItIsTold) {
  Use({testing::IntelXe1()});
  ASSERT_EQ(Open("import=memory"), TRINE_OK);
  EXPECT_EQ(Info(0).imports, kTried | kWritable);
  EXPECT_THAT(Info(0).import_refusal, HasSubstr("mapped files: the option import"));
  ASSERT_EQ(Open("import=none"), TRINE_OK);
  EXPECT_EQ(Info(0).imports, 0u);
  EXPECT_EQ(Info(0).import_alignment, 0u);
  EXPECT_EQ(Open("import=some"), TRINE_INVALID_ARGUMENT);
  EXPECT_THAT(err_.message, HasSubstr("given: some"));
}

// Running out of memory says nothing about the driver.
TEST_F(PluginTest, ATrialThatLackedMemoryIsMadeAgain) {
  FakeDriver& driver = Use({testing::IntelXe1()});
  ASSERT_EQ(Open(), TRINE_OK);
  driver.Fail(kPointers, VK_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(Info(0).imports, 0u) << "not tried";
  EXPECT_STREQ(Info(0).import_refusal, "");
  EXPECT_EQ(Info(0).imports, kTried | kWritable | kReadOnly) << "at the next question";
  EXPECT_EQ(driver.calls["vkCreateDevice"], 2);
}

TEST_F(PluginTest, ATrialIsMadeAFewTimesAtMostAndCostsNoSelfTest) {
  FakeDriver& driver = Use({testing::IntelXe1()});
  ASSERT_EQ(Open(), TRINE_OK);
  driver.Fail(kPointers, VK_ERROR_OUT_OF_HOST_MEMORY, 1, true);
  Info(0);
  const int pipelines = driver.calls["vkCreateComputePipelines"];
  EXPECT_GT(pipelines, 0) << "the self-test's";
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Info(0).imports, 0u);
  EXPECT_EQ(driver.calls["vkCreateDevice"], 3);
  EXPECT_EQ(driver.calls["vkCreateComputePipelines"], pipelines);
  EXPECT_THAT(host_.logs, SizeIs(1)) << "the verdict on its bits, once";
  // Another backend of the process sees the same.
  ASSERT_EQ(Open(), TRINE_OK);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Info(0).imports, 0u);
  EXPECT_EQ(driver.calls["vkCreateDevice"], 6);
  EXPECT_EQ(driver.calls["vkCreateComputePipelines"], pipelines);
  Close();
  EXPECT_EQ(driver.live, 0);
}

TEST_F(PluginTest, ADeviceThatCouldNotBeOpenedForATrialIsAskedAgain) {
  FakeDriver& driver = Use({testing::IntelXe1()});
  ASSERT_EQ(Open(), TRINE_OK);
  driver.Fail(kPointers, VK_ERROR_OUT_OF_HOST_MEMORY);
  Info(0);
  driver.Fail("vkCreateDevice", VK_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(Info(0).imports, 0u);
  EXPECT_EQ(Info(0).imports, kTried | kWritable | kReadOnly);
}

TEST_F(PluginTest, ADeviceLostInATrialIsARefusalThatIsSaid) {
  FakeDriver& driver = Use({testing::IntelXe1()});
  ASSERT_EQ(Open(), TRINE_OK);
  Info(0);
  const int waits = driver.calls["vkWaitSemaphores"];  // the last two belong to the trial
  testing::UseFakeDriver();
  ASSERT_EQ(Open(), TRINE_OK);
  driver.Fail("vkWaitSemaphores", VK_ERROR_DEVICE_LOST, waits - 1);
  EXPECT_EQ(Info(0).imports, 0u) << "mapped files were not tried";
  EXPECT_EQ(Info(0).imports, kTried | kReadOnly);
  EXPECT_STREQ(Info(0).import_refusal, "memory: the device was lost");
  const int opened = driver.calls["vkCreateDevice"];
  ASSERT_EQ(Open(), TRINE_OK);
  EXPECT_EQ(Info(0).imports, kTried | kReadOnly) << "settled";
  EXPECT_EQ(driver.calls["vkCreateDevice"], opened);
}

TEST_F(PluginTest, TextIsCutBetweenCharacters) {
  FakeDriver& driver = Use({testing::IntelXe1()});
  char(&given)[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE] = driver.devices[0].properties.deviceName;
  constexpr size_t kRoom = sizeof(trine_device_info::name) - 1;
  for (const size_t before : {kRoom - 3, kRoom - 2, kRoom - 1}) {
    const std::string name = std::string(before, 'x') + "\u2122\u2122";  // of three bytes each
    std::snprintf(given, sizeof(given), "%s", name.c_str());
    ASSERT_EQ(Open(), TRINE_OK);
    const size_t fits = before + 3 <= kRoom ? before + 3 : before;
    EXPECT_EQ(std::string(Info(0).name), name.substr(0, fits));
  }
}

TEST_F(PluginTest, ADriverThatDoesNotPromiseToRoundIsNotExact) {
  DeviceQuery query = testing::IntelXe1();
  query.properties12.shaderRoundingModeRTEFloat32 = VK_FALSE;
  FakeDriver& driver = Use({query});
  ASSERT_EQ(Open(), TRINE_OK);
  EXPECT_EQ(Info(0).numerics, static_cast<uint32_t>(TRINE_NUMERICS_FAST));
  EXPECT_EQ(driver.calls["vkCreateDevice"], 0) << "nothing needs to be run to know";
}

}  // namespace
}  // namespace trine::vulkan
