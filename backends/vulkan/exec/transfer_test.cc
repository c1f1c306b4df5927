#include "backends/vulkan/exec/transfer.h"

#include <vector>

#include "backends/vulkan/testing/device_fixtures.h"
#include "backends/vulkan/testing/fake_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine::vulkan {
namespace {

using ::testing::Contains;
using testing::FakeDevice;

// The parts of a device that move bytes, over a fake one.
struct Parts {
  explicit Parts(const DeviceQuery& query) : fake(query), memory(*fake.device) {
    fake.driver.budget = uint64_t{8} << 30;
    pipelines = *Pipelines::Create(*fake.device, "");
    queue = *Queue::Create(*fake.device);
  }
  Transfer transfer() {
    return Transfer(*fake.device, memory, *pipelines, *queue, ChooseTuning(fake.device->caps()));
  }
  FakeDevice fake;
  Memory memory;
  std::unique_ptr<Pipelines> pipelines;
  std::unique_ptr<Queue> queue;
};

TEST(TransferTest, MovesBytesDirectlyWhereTheHostSeesThem) {
  Parts parts(testing::Lavapipe());
  auto allocation = parts.memory.Allocate(100, MemoryUse::kDevice);
  ASSERT_TRUE(allocation.ok());
  Transfer transfer = parts.transfer();
  ASSERT_TRUE(transfer.Write(*allocation, 10, "hello", 5).ok());
  char back[5];
  ASSERT_TRUE(transfer.Read(*allocation, 10, back, 5).ok());
  EXPECT_EQ(std::string(back, 5), "hello");
  EXPECT_EQ(parts.fake.driver.submissions, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(transfer.Write(*allocation, 96, "hello", 5)));
  EXPECT_TRUE(absl::IsInvalidArgument(transfer.Read(*allocation, UINT64_MAX, back, 2)));
  EXPECT_TRUE(transfer.Write(*allocation, 100, nullptr, 0).ok());
}

TEST(TransferTest, StagesWhatTheHostDoesNotSee) {
  Parts parts(testing::NvidiaDiscrete());
  const uint64_t bytes = Transfer::kStagingBytes + 100;
  auto allocation = parts.memory.Allocate(bytes + 50, MemoryUse::kDevice);
  ASSERT_TRUE(allocation.ok());
  Transfer transfer = parts.transfer();
  std::vector<char> data(bytes);
  ASSERT_TRUE(transfer.Write(*allocation, 50, data.data(), bytes).ok());
  EXPECT_EQ(parts.fake.driver.submissions, 2);
  EXPECT_THAT(parts.fake.driver.commands, Contains("copy 16777216"));
  EXPECT_THAT(parts.fake.driver.commands, Contains("copy 100"));
  ASSERT_TRUE(transfer.Read(*allocation, 0, data.data(), 7).ok());
  EXPECT_THAT(parts.fake.driver.commands, Contains("copy 7"));
}

TEST(TransferTest, KeepsStagingBuffersForTheNextCall) {
  Parts parts(testing::NvidiaDiscrete());
  auto allocation = parts.memory.Allocate(1000, MemoryUse::kDevice);
  ASSERT_TRUE(allocation.ok());
  const int before = parts.fake.driver.live;
  {
    Transfer transfer = parts.transfer();
    ASSERT_TRUE(transfer.Write(*allocation, 0, "hello", 5).ok());
    const size_t taken = parts.fake.driver.allocations.size();
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(transfer.Write(*allocation, 0, "hello", 5).ok());
    EXPECT_EQ(parts.fake.driver.allocations.size(), taken);
  }
  EXPECT_EQ(parts.fake.driver.live, before) << "nothing stays when it goes";
}

TEST(TransferTest, ACopyThatNeverEndsCostsTheDevice) {
  Parts parts(testing::NvidiaDiscrete());
  auto allocation = parts.memory.Allocate(100, MemoryUse::kDevice);
  ASSERT_TRUE(allocation.ok());
  parts.fake.driver.hangs = true;
  Transfer transfer = parts.transfer();
  EXPECT_TRUE(absl::IsUnavailable(transfer.Write(*allocation, 0, "hello", 5)));
  EXPECT_TRUE(absl::IsUnavailable(parts.fake.device->Health()));
}

TEST(TransferTest, FailuresAreStatuses) {
  Parts parts(testing::NvidiaDiscrete());
  auto allocation = parts.memory.Allocate(100, MemoryUse::kDevice);
  ASSERT_TRUE(allocation.ok());
  Transfer transfer = parts.transfer();
  char byte = 0;
  for (const char* function : {"vkCreateCommandPool", "vkQueueSubmit", "vkBeginCommandBuffer"}) {
    parts.fake.driver.Fail(function, VK_ERROR_OUT_OF_HOST_MEMORY);
    EXPECT_TRUE(absl::IsResourceExhausted(transfer.Read(*allocation, 0, &byte, 1))) << function;
    EXPECT_TRUE(transfer.Read(*allocation, 0, &byte, 1).ok()) << function;
  }
  parts.fake.driver.Fail("vkAllocateMemory", VK_ERROR_OUT_OF_HOST_MEMORY, 1, true);
  EXPECT_TRUE(absl::IsResourceExhausted(transfer.Write(*allocation, 0, "hello", 5)));
}

}  // namespace
}  // namespace trine::vulkan
