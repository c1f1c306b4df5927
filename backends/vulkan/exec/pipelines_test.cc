#include "backends/vulkan/exec/pipelines.h"

#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "backends/vulkan/testing/device_fixtures.h"
#include "backends/vulkan/testing/fake_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/vulkan/spirv/shaders.h"

namespace trine::vulkan {
namespace {

using ::testing::ElementsAre;
using testing::FakeDevice;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Message;

class PipelinesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/trine-pipelines-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    path_ = folder_ + "/deep/cache";
    VkPipelineCacheHeaderVersionOne header{};
    header.headerSize = sizeof(header);
    header.headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE;
    header.vendorID = fake_.device->caps().vendor_id;
    header.deviceID = fake_.device->caps().device_id;
    std::memcpy(header.pipelineCacheUUID, fake_.device->caps().pipeline_cache_uuid.data(), 16);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&header);
    data_.assign(bytes, bytes + sizeof(header));
    data_.push_back(42);
    fake_.driver.cache_data = data_;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Pipelines> Make(const std::string& path = "") {
    auto pipelines = Pipelines::Create(*fake_.device, path);
    EXPECT_TRUE(pipelines.ok()) << pipelines.status();
    return *std::move(pipelines);
  }
  absl::StatusOr<Pipeline> Get(Pipelines& pipelines, std::vector<uint32_t> constants,
                               uint32_t subgroup_size = 0) {
    return pipelines.Get(shaders::add_f32, constants, subgroup_size);
  }
  PipelineCacheFile File(uint64_t hash = 1) const {
    return PipelineCacheFile(path_, fake_.device->caps(), hash);
  }

  FakeDevice fake_{testing::Lavapipe()};
  std::string folder_, path_;
  std::vector<uint8_t> data_;  // in the form that a driver returns
};

TEST_F(PipelinesTest, CompilesEachRequestOnce) {
  {
    const auto pipelines = Make();
    const auto a = Get(*pipelines, {64}), again = Get(*pipelines, {64}), b = Get(*pipelines, {32}),
               c = Get(*pipelines, {64}, 8), d = Get(*pipelines, {64, 5});
    ASSERT_TRUE(a.ok() && again.ok() && b.ok() && c.ok() && d.ok());
    EXPECT_EQ(a->handle, again->handle);
    EXPECT_NE(a->handle, b->handle);
    EXPECT_NE(a->handle, c->handle);
    EXPECT_NE(a->handle, d->handle);
    EXPECT_EQ(a->layout, b->layout);
    EXPECT_EQ(fake_.driver.calls["vkCreateComputePipelines"], 4);
    EXPECT_THAT(fake_.driver.pipeline_constants, ElementsAre(64, 5));
  }
  EXPECT_EQ(fake_.live(), 0);
}

TEST_F(PipelinesTest, RequiresSubgroupSizesOnlyWhereTheyCanBe) {
  const auto pipelines = Make();
  ASSERT_TRUE(Get(*pipelines, {256}, 8).ok());
  EXPECT_EQ(fake_.driver.pipeline_subgroup_size, 8u);
  EXPECT_THAT(Message(Get(*pipelines, {64}, 16).status()), HasSubstr("subgroups of 16"));
  EXPECT_THAT(Message(Get(*pipelines, {60}, 8).status()), HasSubstr("whole subgroups"));
  EXPECT_THAT(Message(Get(*pipelines, {512}, 8).status()), HasSubstr("1 to 32 whole subgroups"));
  EXPECT_THAT(Message(Get(*pipelines, {2048}).status()), HasSubstr("1 to 1024"));
  EXPECT_THAT(Message(Get(*pipelines, {}).status()), HasSubstr("a workgroup of 0"));
}

TEST_F(PipelinesTest, RefusesAShaderThatTheDeviceCantRun) {
  DeviceQuery query = testing::Lavapipe();
  query.properties12.shaderRoundingModeRTEFloat32 = VK_FALSE;
  FakeDevice fake(query);
  auto pipelines = Pipelines::Create(*fake.device, "");
  ASSERT_TRUE(pipelines.ok());
  const uint32_t constants[] = {64};
  const auto pipeline = (*pipelines)->Get(shaders::add_f32, constants, 0);
  EXPECT_TRUE(absl::IsUnimplemented(pipeline.status()));
  EXPECT_THAT(Message(pipeline.status()), HasSubstr("rounding to nearest even"));
}

TEST_F(PipelinesTest, EveryFailureIsAStatusAndCanBeTriedAgain) {
  for (const char* function : {"vkCreateShaderModule", "vkCreateDescriptorSetLayout",
                               "vkCreatePipelineLayout", "vkCreateComputePipelines"}) {
    {
      const auto pipelines = Make();
      fake_.driver.Fail(function, VK_ERROR_OUT_OF_HOST_MEMORY);
      EXPECT_TRUE(absl::IsResourceExhausted(Get(*pipelines, {64}).status())) << function;
      EXPECT_TRUE(Get(*pipelines, {64}).ok()) << function;
    }
    EXPECT_EQ(fake_.live(), 0) << function;
  }
  fake_.driver.Fail("vkCreatePipelineCache", VK_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_FALSE(Pipelines::Create(*fake_.device, "").ok());
  const auto pipelines = Make();
  fake_.driver.Fail("vkCreateComputePipelines", VK_ERROR_DEVICE_LOST);
  EXPECT_TRUE(absl::IsUnavailable(Get(*pipelines, {64}).status()));
  EXPECT_TRUE(absl::IsUnavailable(Get(*pipelines, {64}).status())) << "for good";
}

TEST_F(PipelinesTest, KeepsWhatWasCompiled) {
  auto pipelines = Make(path_);
  EXPECT_THAT(fake_.driver.initial_cache, IsEmpty());
  EXPECT_TRUE(pipelines->Save().ok());
  EXPECT_FALSE(std::filesystem::exists(path_)) << "nothing was compiled";
  ASSERT_TRUE(Get(*pipelines, {64}).ok());
  EXPECT_TRUE(pipelines->Save().ok());
  pipelines = Make(path_);
  EXPECT_EQ(fake_.driver.initial_cache, data_);
  fake_.driver.Fail("vkCreatePipelineCache", VK_ERROR_UNKNOWN);
  pipelines = Make(path_);
  EXPECT_THAT(fake_.driver.initial_cache, IsEmpty()) << "a driver that won't have it starts anew";
}

TEST_F(PipelinesTest, ReadsNoFileThatIsNotItsOwn) {
  ASSERT_TRUE(File().Write(data_).ok());
  EXPECT_EQ(File().Read(), data_);
  EXPECT_THAT(File(2).Read(), IsEmpty()) << "other shaders";
  DeviceCaps other = fake_.device->caps();
  other.driver_version += 1;
  EXPECT_THAT(PipelineCacheFile(path_, other, 1).Read(), IsEmpty()) << "another driver";
  other = fake_.device->caps();
  other.uuid[3] ^= 1;
  EXPECT_THAT(PipelineCacheFile(path_, other, 1).Read(), IsEmpty()) << "another chip";
  std::vector<uint8_t> foreign = data_;
  foreign[8] ^= 1;  // the vendor in the driver's own header
  ASSERT_TRUE(File().Write(foreign).ok());
  EXPECT_THAT(File().Read(), IsEmpty());
}

TEST_F(PipelinesTest, ReadsNoDamagedFile) {
  ASSERT_TRUE(File().Write(data_).ok());
  std::ifstream in(path_, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x20);
    std::ofstream(path_, std::ios::binary) << bad;
    EXPECT_THAT(File().Read(), IsEmpty()) << "byte " << i;
    std::ofstream(path_, std::ios::binary) << good.substr(0, i);
    EXPECT_THAT(File().Read(), IsEmpty()) << "cut at " << i;
  }
  std::ofstream(path_, std::ios::binary) << good;
  EXPECT_EQ(File().Read(), data_);
}

TEST_F(PipelinesTest, WritesInOneStepOrNotAtAll) {
  ASSERT_TRUE(File().Write(data_).ok());
  ASSERT_TRUE(File().Write(data_).ok());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ + "/deep"), {}), 1)
      << "no temporary file stays";
  const PipelineCacheFile nowhere(folder_ + "/deep/cache/x", fake_.device->caps(), 1);
  EXPECT_THAT(Message(nowhere.Write(data_)), HasSubstr("can't be written"));
  EXPECT_TRUE(PipelineCacheFile("", fake_.device->caps(), 1).Write(data_).ok());
}

TEST_F(PipelinesTest, FindsItsPlace) {
  setenv("XDG_CACHE_HOME", "/home/somebody/cache", 1);
  unsetenv("TRINE_VULKAN_CACHE");
  EXPECT_EQ(DefaultPipelineCachePath(fake_.device->caps()),
            "/home/somebody/cache/trine/vulkan-05050505050505050505050505050505.pipelines");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/somebody", 1);
  EXPECT_THAT(DefaultPipelineCachePath(fake_.device->caps()),
              HasSubstr("/home/somebody/.cache/trine/vulkan-"));
  setenv("TRINE_VULKAN_CACHE", "/there", 1);
  EXPECT_THAT(DefaultPipelineCachePath(fake_.device->caps()), HasSubstr("/there/vulkan-"));
  setenv("TRINE_VULKAN_CACHE", "off", 1);
  EXPECT_EQ(DefaultPipelineCachePath(fake_.device->caps()), "");
  unsetenv("TRINE_VULKAN_CACHE");
}

}  // namespace
}  // namespace trine::vulkan
