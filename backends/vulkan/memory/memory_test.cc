#include "backends/vulkan/memory/memory.h"

#include "absl/strings/str_cat.h"
#include "backends/vulkan/testing/device_fixtures.h"
#include "backends/vulkan/testing/fake_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine::vulkan {
namespace {

using ::testing::ElementsAre;
using testing::FakeDevice;
using ::testing::HasSubstr;
using testing::Message;

constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
alignas(4096) std::byte page[8192];

TEST(MemoryTest, CutsAnArenaUp) {
  FakeDevice fake(testing::Lavapipe());
  Memory memory(*fake.device);
  {
    auto a = memory.Allocate(100, MemoryUse::kDevice);
    auto b = memory.Allocate(1000, MemoryUse::kDevice);
    ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
    EXPECT_EQ(a->range().buffer, b->range().buffer);
    EXPECT_EQ(b->range().offset % Memory::kAlignment, 0u);
    EXPECT_NE(a->range().offset, b->range().offset);
    EXPECT_EQ(b->bytes(), 1000u);
    ASSERT_NE(a->host(), nullptr);
    EXPECT_EQ(b->host() - a->host(), static_cast<ptrdiff_t>(b->range().offset - a->range().offset));
    EXPECT_THAT(fake.driver.allocations, ElementsAre(Memory::kArenaBytes));
    EXPECT_EQ(fake.device->heaps().UsedBytes(), Memory::kArenaBytes);
    EXPECT_EQ(fake.device->heaps().FreeBytes(), 2 * kGiB - Memory::kArenaBytes);
  }
  EXPECT_EQ(fake.device->heaps().UsedBytes(), 0u) << "an arena that is all free goes back";
  EXPECT_EQ(fake.live(), 0);
}

TEST(MemoryTest, ADeviceOfSmallAllocationsHasSmallArenas) {
  DeviceQuery query = testing::Lavapipe();
  query.properties11.maxMemoryAllocationSize = kMiB;
  FakeDevice fake(query);
  Memory memory(*fake.device);
  auto a = memory.Allocate(100, MemoryUse::kDevice);
  auto b = memory.Allocate(100, MemoryUse::kDevice);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_THAT(fake.driver.allocations, ElementsAre(kMiB));
}

TEST(MemoryTest, LargeOnesStandAlone) {
  FakeDevice fake(testing::Lavapipe());
  Memory memory(*fake.device);
  auto a = memory.Allocate(100 * kMiB, MemoryUse::kDevice);
  auto b = memory.Allocate(100, MemoryUse::kDevice);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(a->range().buffer, b->range().buffer);
  EXPECT_THAT(fake.driver.allocations, ElementsAre(100 * kMiB, Memory::kArenaBytes));
}

TEST(MemoryTest, UsesHaveArenasOfTheirOwn) {
  FakeDevice fake(testing::NvidiaDiscrete());
  fake.driver.budget = 8 * kGiB;
  Memory memory(*fake.device);
  auto device = memory.Allocate(100, MemoryUse::kDevice);
  auto upload = memory.Allocate(100, MemoryUse::kUpload);
  auto readback = memory.Allocate(100, MemoryUse::kReadback);
  ASSERT_TRUE(device.ok() && upload.ok() && readback.ok());
  EXPECT_THAT(fake.driver.memory_types, ElementsAre(0, 1, 2));
  EXPECT_EQ(device->host(), nullptr);
  EXPECT_NE(upload->host(), nullptr);
  EXPECT_FALSE(upload->host_cached());
  EXPECT_TRUE(readback->host_cached());
}

TEST(MemoryTest, FallsBackToTheNextType) {
  FakeDevice fake(testing::AmdRdna2Apu());
  fake.driver.budget = 8 * kGiB;
  Memory memory(*fake.device);
  fake.driver.Fail("vkAllocateMemory", VK_ERROR_OUT_OF_DEVICE_MEMORY);
  auto a = memory.Allocate(100, MemoryUse::kDevice);
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_THAT(fake.driver.memory_types, ElementsAre(2));
}

TEST(MemoryTest, AFullDeviceSaysWhatIsLeft) {
  FakeDevice fake(testing::Lavapipe());
  Memory memory(*fake.device);
  auto most = memory.Allocate(2000 * kMiB, MemoryUse::kDevice);
  ASSERT_TRUE(most.ok()) << most.status();
  // There is no room for an arena, but enough for the allocation itself.
  auto small = memory.Allocate(10 * kMiB, MemoryUse::kDevice);
  ASSERT_TRUE(small.ok()) << small.status();
  auto too_much = memory.Allocate(100 * kMiB, MemoryUse::kDevice);
  EXPECT_TRUE(absl::IsResourceExhausted(too_much.status()));
  EXPECT_THAT(Message(too_much.status()), HasSubstr("memory of 104857600 bytes could not be had"));
  EXPECT_THAT(Message(too_much.status()), HasSubstr(absl::StrCat(38 * kMiB, " left")));
  EXPECT_THAT(Message(memory.Allocate(3 * kGiB, MemoryUse::kDevice).status()),
              HasSubstr("one allocation has at most 2147483648"));
  EXPECT_TRUE(absl::IsInvalidArgument(memory.Allocate(0, MemoryUse::kDevice).status()));
  most->Reset();
  EXPECT_TRUE(memory.Allocate(100 * kMiB, MemoryUse::kDevice).ok());
}

TEST(MemoryTest, TheDriversBudgetCounts) {
  FakeDevice fake(testing::IntelXe1());
  Memory memory(*fake.device);
  fake.driver.budget = 200 * kMiB;
  fake.driver.usage = 50 * kMiB;
  EXPECT_EQ(fake.device->heaps().FreeBytes(), 150 * kMiB);
  EXPECT_TRUE(memory.Allocate(100 * kMiB, MemoryUse::kDevice).ok());
  EXPECT_THAT(Message(memory.Allocate(160 * kMiB, MemoryUse::kDevice).status()),
              HasSubstr("157286400 left"));
}

TEST(MemoryTest, EveryFailureIsAStatusAndLeavesNothing) {
  for (const char* function : {"vkCreateBuffer", "vkBindBufferMemory", "vkMapMemory"}) {
    FakeDevice fake(testing::Lavapipe());
    Memory memory(*fake.device);
    fake.driver.Fail(function, VK_ERROR_OUT_OF_HOST_MEMORY, 1, true);
    EXPECT_TRUE(absl::IsResourceExhausted(memory.Allocate(100, MemoryUse::kDevice).status()))
        << function;
    EXPECT_EQ(fake.live(), 0) << function;
    EXPECT_EQ(fake.device->heaps().UsedBytes(), 0u) << function;
  }
  {
    FakeDevice fake(testing::AmdRdna2Apu());  // has other memory types to try
    fake.driver.budget = 8 * kGiB;
    Memory memory(*fake.device);
    fake.driver.Fail("vkBindBufferMemory", VK_ERROR_OUT_OF_HOST_MEMORY);
    EXPECT_TRUE(memory.Allocate(100, MemoryUse::kDevice).ok());
    EXPECT_EQ(fake.live(), 0);
  }
  FakeDevice fake(testing::Lavapipe());
  Memory memory(*fake.device);
  fake.driver.Fail("vkAllocateMemory", VK_ERROR_DEVICE_LOST);
  EXPECT_TRUE(absl::IsUnavailable(memory.Allocate(100, MemoryUse::kDevice).status()));
  EXPECT_TRUE(absl::IsUnavailable(memory.Allocate(100, MemoryUse::kDevice).status())) << "for good";
  EXPECT_TRUE(absl::IsUnavailable(memory.Import(page, 4096).status()));
  EXPECT_EQ(fake.live(), 0);
}

TEST(MemoryTest, Imports) {
  FakeDevice fake(testing::Lavapipe());
  Memory memory(*fake.device);
  {
    auto imported = memory.Import(page, sizeof(page));
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_TRUE(imported->imported());
    EXPECT_EQ(imported->host(), page);
    EXPECT_EQ(imported->range().offset, 0u);
    EXPECT_EQ(fake.device->heaps().UsedBytes(), sizeof(page));
    auto other = memory.Allocate(100, MemoryUse::kDevice);
    EXPECT_NE(other->range().buffer, imported->range().buffer);
  }
  EXPECT_EQ(fake.live(), 0);
}

TEST(MemoryTest, RefusedImportsSaySo) {
  FakeDevice fake(testing::Lavapipe());
  Memory memory(*fake.device);
  EXPECT_TRUE(absl::IsInvalidArgument(memory.Import(page + 8, 4096).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(memory.Import(page, 100).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(memory.Import(page, 0).status()));
  fake.driver.Fail("vkGetMemoryHostPointerPropertiesEXT", VK_ERROR_INVALID_EXTERNAL_HANDLE);
  EXPECT_TRUE(absl::IsUnimplemented(memory.Import(page, 4096).status()));
  fake.driver.Fail("vkAllocateMemory", VK_ERROR_INVALID_EXTERNAL_HANDLE);
  const auto refused = memory.Import(page, 4096);
  EXPECT_TRUE(absl::IsUnimplemented(refused.status()));
  EXPECT_THAT(Message(refused.status()), HasSubstr("could not be imported"));
  EXPECT_TRUE(memory.Import(page, 4096).ok()) << "the next may be taken";
}

TEST(MemoryTest, ADeviceThatCantImportSaysSo) {
  DeviceQuery query = testing::Lavapipe();
  query.extensions.clear();
  FakeDevice fake(query);
  Memory memory(*fake.device);
  EXPECT_TRUE(absl::IsUnimplemented(memory.Import(page, 4096).status()));
}

}  // namespace
}  // namespace trine::vulkan
