#include "backends/vulkan/open_device.h"

#include <stdlib.h>

#include "backends/vulkan/exec/recorder.h"
#include "backends/vulkan/testing/device_fixtures.h"
#include "backends/vulkan/testing/fake_driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine::vulkan {
namespace {

using testing::FakeDriver;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::string Refusal(const std::string& text) {
  const auto options = ParseDeviceOptions(text);
  EXPECT_EQ(options.ok(), false) << text;
  EXPECT_TRUE(absl::IsInvalidArgument(options.status())) << options.status();
  return std::string(options.status().message());
}

TEST(DeviceOptionsTest, NothingSaidIsTheDefault) {
  for (const char* text : {"", ";", " ; ;"}) {
    const auto options = ParseDeviceOptions(text);
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->timeout, std::chrono::minutes(10));
    EXPECT_TRUE(options->tuning.empty());
  }
}

TEST(DeviceOptionsTest, ReadsTimeOutsAndTunings) {
  const auto options = ParseDeviceOptions(" timeout_ms = 500 ;int_dot=0;gemv_rows=4;");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->timeout, std::chrono::milliseconds(500));
  EXPECT_THAT(options->tuning, UnorderedElementsAre(Pair("int_dot", "0"), Pair("gemv_rows", "4")));
}

TEST(DeviceOptionsTest, LaterOnesHoldAgainstEarlierOnes) {
  const auto options = ParseDeviceOptions("timeout_ms=500;timeout_ms=7");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->timeout, std::chrono::milliseconds(7));
}

TEST(DeviceOptionsTest, RefusesByName) {
  EXPECT_THAT(Refusal("colour=red"), HasSubstr("no option called colour"));
  EXPECT_THAT(Refusal("int_dot=0;INT_DOT=0"), HasSubstr("no option called INT_DOT"));
}

TEST(DeviceOptionsTest, RefusesWhatIsNoOption) {
  for (const char* text : {"int_dot", "=1", "int_dot=", "timeout_ms=1;;junk"}) {
    EXPECT_THAT(Refusal(text), HasSubstr("options are key=value")) << text;
  }
}

TEST(DeviceOptionsTest, RefusesTimeOutsThatAreNone) {
  for (const char* value : {"0", "-1", "soon", "1s", "86400001", "99999999999999999999"}) {
    EXPECT_THAT(Refusal(std::string("timeout_ms=") + value), HasSubstr("from 1 to 86400000"));
  }
}

class OpenDeviceTest : public ::testing::Test {
 protected:
  OpenDeviceTest() : driver_({testing::NvidiaDiscrete()}) {
    // No file is read or written.
    setenv("TRINE_VULKAN_CACHE", "off", 1);
    driver_.budget = uint64_t{1} << 33;
    auto global = LoadGlobal(FakeDriver::Entry());
    auto made = Instance::Create(*global, {});
    instance_ = *std::move(made);
    fixed_ = driver_.live;
  }

  absl::StatusOr<std::unique_ptr<OpenDevice>> Open(const std::string& options = "") {
    const auto parsed = ParseDeviceOptions(options);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return OpenDevice::Create(*instance_, instance_->devices()[0], *parsed);
  }

  FakeDriver driver_;
  std::unique_ptr<Instance> instance_;
  int fixed_ = 0;
};

TEST_F(OpenDeviceTest, TuningsReachWhatRunsDependOn) {
  auto open = Open("int_dot=0;elementwise_workgroup=64;gemv_workgroup=128;gemv_rows=4");
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_FALSE((*open)->tuning.int_dot);
  EXPECT_FALSE((*open)->products.int_dot);
  EXPECT_EQ((*open)->tuning.elementwise_workgroup, 64u);
  EXPECT_EQ((*open)->products.gemv_workgroup, 128u);
  EXPECT_EQ((*open)->products.gemv_rows, 4u);
  EXPECT_EQ((*Open())->products.gemv_fill, 32768u) << "as suits the device";
}

TEST_F(OpenDeviceTest, TuningsThatTheDeviceDoesNotHaveAreRefused) {
  const auto open = Open("subgroup_size=64");
  EXPECT_TRUE(absl::IsInvalidArgument(open.status())) << open.status();
  EXPECT_THAT(std::string(open.status().message()), HasSubstr("subgroup_size=64"));
  EXPECT_EQ(driver_.live, fixed_);
}

TEST_F(OpenDeviceTest, NothingIsLeftOfADeviceThatCouldNotBeOpened) {
  for (const char* function : {"vkCreateDevice", "vkCreatePipelineCache", "vkCreateSemaphore"}) {
    driver_.Fail(function, VK_ERROR_OUT_OF_HOST_MEMORY);
    const auto open = Open();
    EXPECT_TRUE(absl::IsResourceExhausted(open.status())) << function << open.status();
    EXPECT_EQ(driver_.live, fixed_) << function;
  }
}

TEST_F(OpenDeviceTest, WorkBeyondItsTimeCostsTheDevice) {
  auto open = Open("timeout_ms=20");
  ASSERT_TRUE(open.ok()) << open.status();
  auto memory = (*open)->memory->Allocate(512, MemoryUse::kDevice);
  ASSERT_TRUE(memory.ok());
  Recorder recorder(*(*open)->device, *(*open)->pipelines, (*open)->tuning);
  ASSERT_TRUE(recorder.Copy(memory->range().Part(0, 256), memory->range().Part(256, 256)).ok());
  auto recording = recorder.Finish();
  ASSERT_TRUE(recording.ok());
  EXPECT_TRUE((*open)->RunAndWait(**recording).ok());
  driver_.hangs = true;
  const absl::Status status = (*open)->RunAndWait(**recording);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("has not finished its work in 20 ms"));
  driver_.hangs = false;
  EXPECT_TRUE(absl::IsUnavailable((*open)->RunAndWait(**recording))) << "for good";
  // Objects that the work may still use must not be destroyed.
  const int live = driver_.live;
  recording->reset();
  memory->Reset();
  open->reset();
  instance_.reset();
  EXPECT_EQ(driver_.live, live);
}

}  // namespace
}  // namespace trine::vulkan
