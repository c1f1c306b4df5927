#include "backends/vulkan/device/device_caps.h"

#include "backends/vulkan/testing/device_fixtures.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine::vulkan {
namespace {

using ::testing::HasSubstr;
using namespace ::trine::vulkan::testing;  // NOLINT: fixtures

TEST(DeviceCapsTest, TellsArchitecturesByTheirProperties) {
  EXPECT_EQ(MakeDeviceCaps(IntelXe1()).architecture, Architecture::kIntelXe1);
  EXPECT_EQ(MakeDeviceCaps(IntelXe2()).architecture, Architecture::kIntelXe2);
  EXPECT_EQ(MakeDeviceCaps(AmdRdna2Apu()).architecture, Architecture::kAmdRdna);
  EXPECT_EQ(MakeDeviceCaps(AmdRdna3Apu()).architecture, Architecture::kAmdRdna3);
  EXPECT_EQ(MakeDeviceCaps(NvidiaDiscrete()).architecture, Architecture::kNvidia);
  EXPECT_EQ(MakeDeviceCaps(Lavapipe()).architecture, Architecture::kSoftware);

  DeviceQuery old_intel = IntelXe1();
  old_intel.int_dot = {};
  EXPECT_EQ(MakeDeviceCaps(old_intel).architecture, Architecture::kIntelOther);
  DeviceQuery gcn = AmdRdna2Apu();
  gcn.subgroup_sizes.minSubgroupSize = 64;
  EXPECT_EQ(MakeDeviceCaps(gcn).architecture, Architecture::kAmdGcn);
}

TEST(DeviceCapsTest, TakesWhatTheDriverSays) {
  const DeviceCaps caps = MakeDeviceCaps(Lavapipe());
  EXPECT_EQ(caps.unusable, "");
  EXPECT_EQ(caps.kind, DeviceKind::kCpu);
  EXPECT_TRUE(caps.unified_memory);
  EXPECT_TRUE(caps.rounds_to_nearest_even);
  EXPECT_TRUE(caps.int_dot);
  EXPECT_FALSE(caps.int_dot_accelerated);
  EXPECT_EQ(caps.subgroup_size, 8u);
  EXPECT_TRUE(caps.can_require_subgroup_size);
  EXPECT_EQ(caps.max_storage_range, 128u << 20);
  EXPECT_EQ(caps.import_alignment, 4096u);
  EXPECT_FALSE(caps.memory_budget);
  EXPECT_EQ(caps.HeapBytes(), uint64_t{2} << 30);
  EXPECT_EQ(caps.pci_id, "");

  const DeviceCaps nvidia = MakeDeviceCaps(NvidiaDiscrete());
  EXPECT_FALSE(nvidia.unified_memory);
  EXPECT_TRUE(nvidia.memory_budget);
  EXPECT_EQ(nvidia.pci_id, "0000:01:00.0");
  EXPECT_EQ(nvidia.HeapBytes(), (uint64_t{12} << 30) + (uint64_t{1} << 28));
}

TEST(DeviceCapsTest, WithoutSizeControlTheSizeIsTheDrivers) {
  DeviceQuery query = IntelXe1();
  query.subgroup_size_features = {};
  const DeviceCaps caps = MakeDeviceCaps(query);
  EXPECT_FALSE(caps.can_require_subgroup_size);
  EXPECT_EQ(caps.min_subgroup_size, 32u);
  EXPECT_EQ(caps.max_subgroup_size, 32u);
}

TEST(DeviceCapsTest, SaysAllThatADeviceLacks) {
  DeviceQuery query = Lavapipe();
  query.features12.timelineSemaphore = VK_FALSE;
  query.features11.storageBuffer16BitAccess = VK_FALSE;
  query.properties11.subgroupSupportedStages = VK_SHADER_STAGE_FRAGMENT_BIT;
  query.properties.limits.maxPushConstantsSize = 64;
  query.properties.limits.maxPerStageDescriptorStorageBuffers = 4;
  query.queue_families[0].queueFlags = VK_QUEUE_TRANSFER_BIT;
  const std::string reason = MakeDeviceCaps(query).unusable;
  for (const char* part : {"llvmpipe", "queue", "timeline semaphores", "16-bit storage",
                           "subgroups", "16 storage buffers", "128 bytes of push constants"}) {
    EXPECT_THAT(reason, HasSubstr(part));
  }
  query = Lavapipe();
  query.properties.apiVersion = VK_API_VERSION_1_1;
  EXPECT_THAT(MakeDeviceCaps(query).unusable, HasSubstr("offers Vulkan 1.1; 1.2 is needed"));
}

TEST(DeviceCapsTest, KnowsWhatAShaderNeeds) {
  constexpr uint32_t kCapabilities[] = {1, 4467, 6019, 6018};
  Shader shader{};
  shader.name = "gemv";
  shader.capabilities = kCapabilities;
  shader.capability_count = 4;
  DeviceQuery query = Lavapipe();
  EXPECT_EQ(MissingForShader(MakeDeviceCaps(query), shader), "");
  query.int_dot_features.shaderIntegerDotProduct = VK_FALSE;
  EXPECT_THAT(MissingForShader(MakeDeviceCaps(query), shader), HasSubstr("integer dot products"));
  query.properties12.shaderRoundingModeRTEFloat32 = VK_FALSE;
  EXPECT_THAT(MissingForShader(MakeDeviceCaps(query), shader),
              HasSubstr("rounding to nearest even, which shader gemv needs"));
  constexpr uint32_t kUnknown[] = {5345};
  shader.capabilities = kUnknown;
  shader.capability_count = 1;
  EXPECT_THAT(MissingForShader(MakeDeviceCaps(query), shader), HasSubstr("does not know of"));
}

}  // namespace
}  // namespace trine::vulkan
