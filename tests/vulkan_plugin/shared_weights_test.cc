// Tests the CPU and a device on a driver with the same bytes of weights, each way drivers allow.
#include "tests/model/shared_weights.h"

#include <cstdlib>

#include "gmock/gmock.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

class VulkanSharedWeightsTest : public SharedWeightsTest {
 protected:
  void SetUp() override {
    SharedWeightsTest::SetUp();
    cpu_ = Open(TRINE_CPU_PLUGIN);
    gpu_ = Open(TRINE_VULKAN_PLUGIN);
    if (gpu_ != nullptr && gpu_->info().import_alignment != 0) return;
    if (std::getenv("TRINE_REQUIRE_VULKAN") != nullptr) FAIL() << "no device that imports memory";
    GTEST_SKIP() << "no device that imports memory";
  }

  std::shared_ptr<Device> cpu_, gpu_;
};

TEST_F(VulkanSharedWeightsTest, TheMappedFileServesBoth) {
  if ((gpu_->info().imports & TRINE_IMPORTS_READ_ONLY) == 0) {
    GTEST_SKIP() << gpu_->info().import_refusal;
  }
  const auto store = Store({cpu_, gpu_});
  EXPECT_EQ(Products(*store, gpu_), Products(*store, cpu_));
  EXPECT_EQ(store->BytesOf(*cpu_).file, Bytes());
  EXPECT_EQ(store->BytesOf(*gpu_).file, Bytes());
  EXPECT_EQ(store->BytesOf(*gpu_).copied, 0u);
}

TEST_F(VulkanSharedWeightsTest, OneArenaServesBoth) {
  gpu_ = Open(TRINE_VULKAN_PLUGIN, "import=memory");
  ASSERT_NE(gpu_, nullptr);
  if ((gpu_->info().imports & TRINE_IMPORTS_WRITABLE) == 0) {
    GTEST_SKIP() << gpu_->info().import_refusal;
  }
  const auto store = Store({cpu_, gpu_});
  const auto on_cpu = Products(*store, cpu_), on_gpu = Products(*store, gpu_);
  EXPECT_EQ(on_gpu, on_cpu);
  for (const auto& device : {cpu_, gpu_}) {
    EXPECT_EQ(store->BytesOf(*device).arena, Bytes());
    EXPECT_EQ(store->BytesOf(*device).copied, 0u) << "no second copy";
  }
  EXPECT_LT(store->arena_bytes(), Bytes() + 65536);
  EXPECT_THAT(store->BytesOf(*gpu_).refusal, HasSubstr("mapped files: the option import"));
}

TEST_F(VulkanSharedWeightsTest, ElseTheDeviceHasACopy) {
  gpu_ = Open(TRINE_VULKAN_PLUGIN, "import=none");
  ASSERT_NE(gpu_, nullptr);
  const auto store = Store({cpu_, gpu_});
  EXPECT_EQ(Products(*store, gpu_), Products(*store, cpu_));
  EXPECT_EQ(store->BytesOf(*cpu_).file, Bytes());
  EXPECT_EQ(store->BytesOf(*gpu_).copied, Bytes());
}

}  // namespace
}  // namespace trine
