#include "backends/vulkan/exec/import_trial.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <filesystem>

#include "backends/vulkan/testing/device_fixtures.h"
#include "backends/vulkan/testing/fake_driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trine/backend.h"

namespace trine::vulkan {
namespace {

using ::testing::Each;
using testing::FakeDriver;
using ::testing::SizeIs;

constexpr char kPointers[] = "vkGetMemoryHostPointerPropertiesEXT";
constexpr uint32_t kAll = TRINE_IMPORTS_TRIED | TRINE_IMPORTS_WRITABLE | TRINE_IMPORTS_READ_ONLY;

// A device of a fake driver that executes copies.
struct Session {
  explicit Session(const DeviceQuery& query, const std::string& options = "") : driver({query}) {
    setenv("TRINE_VULKAN_CACHE", "off", 1);
    driver.budget = uint64_t{1} << 33;
    driver.copies = true;
    auto made = Instance::Create(*LoadGlobal(FakeDriver::Entry()), {});
    instance = *std::move(made);
    Open(options);
  }
  void Open(const std::string& options = "") {
    auto opened =
        OpenDevice::Create(*instance, instance->devices()[0], *ParseDeviceOptions(options));
    device = *std::move(opened);
    fixed = driver.live;
  }
  void Try(bool compare = true) { TryImports(*device, compare, &trial); }

  FakeDriver driver;
  std::unique_ptr<Instance> instance;
  std::unique_ptr<OpenDevice> device;
  ImportTrial trial;
  int fixed = 0;  // objects that belong to the device
};

DeviceQuery Aligned(uint64_t alignment) {
  DeviceQuery query = testing::IntelXe1();
  query.host_import.minImportedHostPointerAlignment = alignment;
  return query;
}

bool IsMapped(const void* page) {
  return msync(const_cast<void*>(page), 1, MS_ASYNC) == 0 || errno != ENOMEM;
}

TEST(ImportTrialTest, TakesWhatIsReadRight) {
  Session s(testing::IntelXe1());
  s.Try();
  EXPECT_EQ(s.trial.Flags(), kAll) << s.trial.Refusal();
  EXPECT_EQ(s.trial.Refusal(), "");
  EXPECT_THAT(s.driver.imports, SizeIs(2));
  s.Try();
  EXPECT_THAT(s.driver.imports, SizeIs(2)) << "settled";
  for (const void* page : s.driver.imports) EXPECT_FALSE(IsMapped(page));
}

TEST(ImportTrialTest, MayBeAlignedToMoreThanAPage) {
  constexpr uint64_t kLarge = uint64_t{1} << 20;
  Session s(Aligned(kLarge));
  s.Try();
  EXPECT_EQ(s.trial.memory.outcome, KindTrial::kTaken) << s.trial.Refusal();
  ASSERT_FALSE(s.driver.imports.empty());
  for (const void* page : s.driver.imports) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(page) % kLarge, 0u);
  }
}

// This test's own program file is smaller than the alignment.
TEST(ImportTrialTest, WhatThereIsNoneOfIsUntried) {
  const uint64_t more = std::bit_ceil(std::filesystem::file_size("/proc/self/exe") + 1);
  Session s(Aligned(more));
  s.driver.copies = false;
  s.Try(false);
  EXPECT_THAT(s.driver.imports, SizeIs(1)) << "memory";
  EXPECT_EQ(s.trial.files.outcome, KindTrial::kUntried);
  EXPECT_FALSE(s.trial.settled());
  EXPECT_EQ(s.trial.Flags(), 0u) << "the host is to try";
  EXPECT_EQ(s.trial.Refusal(), "");
  EXPECT_EQ(s.driver.live, s.fixed);
}

TEST(ImportTrialTest, ShortMemoryIsNoRefusalAndIsTriedAgain) {
  Session s(testing::IntelXe1());
  s.driver.Fail(kPointers, VK_ERROR_OUT_OF_HOST_MEMORY);
  s.Try();
  EXPECT_EQ(s.trial.memory.outcome, KindTrial::kUntried);
  EXPECT_EQ(s.trial.files.outcome, KindTrial::kTaken);
  EXPECT_EQ(s.trial.Flags(), 0u);
  s.Try();
  EXPECT_EQ(s.trial.Flags(), kAll);
  EXPECT_EQ(s.driver.calls[kPointers], 3) << "files are settled";
}

TEST(ImportTrialTest, WhatIsReadWrongIsRefused) {
  Session s(testing::IntelXe1());
  s.driver.copies = false;
  s.Try();
  EXPECT_EQ(s.trial.Flags(), static_cast<uint32_t>(TRINE_IMPORTS_TRIED));
  EXPECT_EQ(s.trial.Refusal(),
            "memory and mapped files: the device reads other bytes than are there");
  s.trial = {};
  s.Try(false);
  EXPECT_EQ(s.trial.Flags(), kAll) << "of a device that computes wrong anyway";
}

// Arenas are filled after they are imported.
TEST(ImportTrialTest, MemoryIsWrittenAfterItWasImported) {
  Session s(testing::IntelXe1());
  s.driver.snapshots = true;
  s.Try();
  EXPECT_EQ(s.trial.Flags(), static_cast<uint32_t>(TRINE_IMPORTS_TRIED | TRINE_IMPORTS_READ_ONLY));
  EXPECT_EQ(s.trial.Refusal(), "memory: the device reads other bytes than are there");
}

// A device also writes to imported memory: the hidden state that one segment hands to the next.
TEST(ImportTrialTest, WhatTheDeviceWritesIsSeen) {
  Session s(testing::IntelXe1());
  s.driver.keeps_writes = true;
  s.Try();
  EXPECT_EQ(s.trial.Flags(), static_cast<uint32_t>(TRINE_IMPORTS_TRIED | TRINE_IMPORTS_READ_ONLY));
  EXPECT_EQ(s.trial.Refusal(), "memory: what the device writes is not there");
}

TEST(ImportTrialTest, ReasonsAreShort) {
  Session s(testing::IntelXe1(), "import=memory");
  s.driver.Fail(kPointers, VK_ERROR_INVALID_EXTERNAL_HANDLE);
  s.Try();
  EXPECT_EQ(s.trial.Refusal(),
            "memory: the driver says VK_ERROR_INVALID_EXTERNAL_HANDLE; "
            "mapped files: the option import keeps it from being imported");
  EXPECT_LT(s.trial.Refusal().size(), sizeof(trine_device_info::import_refusal));
  s.trial = {};
  s.driver.missing.insert(kPointers);
  s.Open();
  s.Try();
  EXPECT_EQ(s.trial.Refusal(), "memory and mapped files: can't import host memory");
}

TEST(ImportTrialTest, ALossIsARefusalOfWhatWasTried) {
  for (const char* function : {"vkAllocateMemory", "vkQueueSubmit", "vkWaitSemaphores"}) {
    Session s(testing::IntelXe1());
    s.driver.Fail(function, VK_ERROR_DEVICE_LOST);
    s.Try();
    EXPECT_EQ(s.trial.Refusal(), "memory: the device was lost") << function;
    EXPECT_EQ(s.trial.files.outcome, KindTrial::kUntried) << function;
    EXPECT_EQ(s.trial.Flags(), 0u) << function;
    s.Open();
    s.Try();
    EXPECT_EQ(s.trial.Flags(), static_cast<uint32_t>(TRINE_IMPORTS_TRIED | TRINE_IMPORTS_READ_ONLY))
        << function;
    EXPECT_EQ(s.trial.Refusal(), "memory: the device was lost") << function;
  }
}

TEST(ImportTrialTest, WorkThatNeverEndsTakesSecondsAndKeepsItsPages) {
  Session s(testing::IntelXe1());
  s.driver.hangs = true;
  s.Try();
  s.driver.hangs = false;
  EXPECT_EQ(s.trial.Refusal(), "memory: the device did not finish and was given up");
  EXPECT_EQ(s.trial.files.outcome, KindTrial::kUntried);
  EXPECT_THAT(s.driver.wait_timeouts, Each(uint64_t{10'000'000'000}));
  ASSERT_THAT(s.driver.imports, SizeIs(1));
  EXPECT_TRUE(IsMapped(s.driver.imports[0])) << "the device may still read them";
  s.device.reset();
  EXPECT_TRUE(IsMapped(s.driver.imports[0]));
}

TEST(ImportTrialTest, TakesNoLongerThanItIsTold) {
  Session s(testing::IntelXe1(), "timeout_ms=20");
  s.Try();
  EXPECT_THAT(s.driver.wait_timeouts, Each(uint64_t{20'000'000}));
  EXPECT_THAT(s.driver.wait_timeouts, SizeIs(3));  // reading both kinds, writing one
}

TEST(ImportTrialTest, WhereNothingIsImportedNothingIsTried) {
  for (const char* options : {"", "import=none"}) {
    Session s(*options == 0 ? testing::NvidiaDiscrete() : testing::IntelXe1(), options);
    s.Try();
    EXPECT_THAT(s.driver.imports, SizeIs(0));
    EXPECT_EQ(s.trial.Flags(), 0u);
  }
}

}  // namespace
}  // namespace trine::vulkan
