// Tests plans through the plugin's table, over a driver that only records its calls.
#include "backends/vulkan/backend.h"
#include "backends/vulkan/testing/device_fixtures.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/vulkan_plugin/plugin_session.h"

namespace trine::vulkan {
namespace {

using testing::Alloc;
using ::testing::ElementsAre;
using testing::FakeDriver;
using testing::FakeHost;
using ::testing::HasSubstr;
using testing::PlanOnDevice;
using testing::Table;

// Two devices, the first with a plan that is ready to be created.
class PlanTest : public ::testing::Test {
 protected:
  explicit PlanTest(const DeviceQuery& query = testing::IntelXe1())
      : driver_({query, testing::NvidiaDiscrete()}) {
    testing::UseFakeDriver();
    unsetenv("TRINE_VULKAN_TUNING");
    driver_.budget = uint64_t{1} << 33;
    EXPECT_EQ(Table().open(host_.host(), "", &backend_, &err_), TRINE_OK) << err_.message;
    for (uint32_t i = 0; i < 2; ++i) {
      EXPECT_EQ(Table().device_open(backend_, i, &devices_[i], &err_), TRINE_OK) << err_.message;
    }
    plan_ = std::make_unique<PlanOnDevice>(devices_[0]);
    EXPECT_EQ(plan_->MakeBuffers(&err_), TRINE_OK) << err_.message;
    EXPECT_EQ(plan_->Query(&err_), TRINE_OK) << err_.message;
  }
  ~PlanTest() override {
    plan_.reset();
    for (trine_device* device : devices_) Table().device_close(device);
    Table().close(backend_);
    EXPECT_EQ(driver_.live, 0);
  }

  // Returns why a plan can't be created.
  std::string Refusal(const trine_plan_desc& desc) {
    trine_plan* plan = nullptr;
    err_ = {};
    EXPECT_EQ(Table().plan_create(devices_[0], &desc, &plan, &err_), TRINE_INVALID_ARGUMENT);
    EXPECT_EQ(plan, nullptr);
    return err_.message;
  }
  int Recorded() { return driver_.calls["vkCreateCommandPool"]; }

  FakeDriver driver_;
  FakeHost host_;
  trine_backend* backend_ = nullptr;
  trine_device* devices_[2] = {};
  std::unique_ptr<PlanOnDevice> plan_;
  trine_error err_{};
};

TEST_F(PlanTest, RecordsOnceForEachNumberOfColumns) {
  ASSERT_EQ(plan_->Create(&err_), TRINE_OK) << err_.message;
  const int before = Recorded();
  for (const int64_t columns : {1, 1, 7, 1, 7}) {
    ASSERT_EQ(plan_->Run(columns, &err_), TRINE_OK) << err_.message;
  }
  EXPECT_EQ(Recorded() - before, 2);
}

TEST_F(PlanTest, RequiresTheSubgroupsOfItsGemvs) {
  ASSERT_EQ(plan_->Create(&err_), TRINE_OK) << err_.message;
  ASSERT_EQ(plan_->Run(1, &err_), TRINE_OK) << err_.message;
  EXPECT_TRUE(driver_.subgroup_sizes.contains(16)) << "Intel's GEMVs";
  EXPECT_TRUE(driver_.subgroup_sizes.contains(0)) << "all else";
}

TEST_F(PlanTest, KeepsTheRecordingsUsedLast) {
  ASSERT_EQ(plan_->Create(&err_), TRINE_OK) << err_.message;
  constexpr int64_t kKept = 48;
  for (int64_t columns = 1; columns <= kKept; ++columns) plan_->Run(columns, &err_);
  const int before = Recorded(), live = driver_.live;
  plan_->Run(1, &err_);
  EXPECT_EQ(Recorded(), before) << "still kept";
  plan_->Run(kKept + 1, &err_);  // in place of 2
  EXPECT_EQ(Recorded(), before + 1);
  EXPECT_EQ(driver_.live, live) << "as many as before";
  plan_->Run(1, &err_);
  EXPECT_EQ(Recorded(), before + 1);
  plan_->Run(2, &err_);
  EXPECT_EQ(Recorded(), before + 2);
}

TEST_F(PlanTest, ParametersOutOfRangeAreRefused) {
  ASSERT_EQ(plan_->Create(&err_), TRINE_OK) << err_.message;
  for (const int64_t columns : {-1, 0, 65}) {
    EXPECT_EQ(plan_->Run(columns, &err_), TRINE_INVALID_ARGUMENT) << columns;
    EXPECT_THAT(err_.message, HasSubstr("outside 1 to 64"));
  }
}

TEST_F(PlanTest, BindingsBeginWhereTheDeviceSaidTheyDo) {
  trine_buffer* larger = nullptr;
  ASSERT_EQ(Alloc(devices_[0], 1 << 20, &larger, &err_), TRINE_OK);
  trine_plan_desc desc = plan_->Desc();
  plan_->bindings[1].span = {larger, 36, plan_->bindings[1].span.bytes};
  EXPECT_THAT(Refusal(desc), HasSubstr("slot 1 is bound to begins at 36"));
  plan_->bindings[1].span.offset = 128;
  desc.scratch = {larger, 65536 + 16, desc.scratch.bytes};
  EXPECT_THAT(Refusal(desc), HasSubstr("scratch begins at"));
  desc.scratch.offset = 65536;
  ASSERT_EQ(Table().plan_create(devices_[0], &desc, &plan_->plan, &err_), TRINE_OK) << err_.message;
  EXPECT_EQ(plan_->Run(3, &err_), TRINE_OK) << err_.message;
  Table().plan_destroy(plan_->plan);
  plan_->plan = nullptr;
  Table().buffer_free(larger);
}

TEST_F(PlanTest, BuffersOfOtherDevicesAreRefused) {
  trine_buffer* foreign = nullptr;
  ASSERT_EQ(Alloc(devices_[1], 1 << 20, &foreign, &err_), TRINE_OK);
  trine_plan_desc desc = plan_->Desc();
  plan_->bindings[2].span.buffer = foreign;
  EXPECT_THAT(Refusal(desc), HasSubstr("a buffer of another device"));
  trine_copy copy{};
  copy.src.buffer = plan_->buffers[1];
  copy.dst.buffer = foreign;
  copy.bytes = 4;
  trine_copy_args args{};
  args.struct_size = sizeof(args);
  args.n_copies = 1;
  args.copy_stride = sizeof(copy);
  args.copies = &copy;
  EXPECT_EQ(Table().copy_run(devices_[0], &args, &err_), TRINE_INVALID_ARGUMENT);
  Table().buffer_free(foreign);
}

TEST_F(PlanTest, ReadOnlyBuffersHoldConstantsOnly) {
  alignas(4096) static std::byte pages[65536];
  trine_import_desc import{};
  import.struct_size = sizeof(import);
  import.memory = TRINE_MEMORY_WEIGHTS;
  import.flags = TRINE_IMPORT_READ_ONLY;
  import.host_ptr = pages;
  import.bytes = sizeof(pages);
  trine_buffer* buffer = nullptr;
  ASSERT_EQ(Table().buffer_import(devices_[0], &import, &buffer, &err_), TRINE_OK) << err_.message;
  trine_plan_desc desc = plan_->Desc();
  plan_->bindings[2].span.buffer = buffer;
  EXPECT_THAT(Refusal(desc), HasSubstr("slot 2 is bound to is memory that can't be written"));
  desc = plan_->Desc();
  plan_->bindings[0].span.buffer = buffer;
  ASSERT_EQ(Table().plan_create(devices_[0], &desc, &plan_->plan, &err_), TRINE_OK) << err_.message;
  Table().plan_destroy(plan_->plan);
  plan_->plan = nullptr;
  Table().buffer_free(buffer);
}

TEST_F(PlanTest, ScratchMustBeAsLargeAsAskedFor) {
  trine_plan_desc desc = plan_->Desc();
  desc.scratch.bytes -= 1;
  EXPECT_THAT(Refusal(desc), HasSubstr("missing or too small"));
  desc.scratch.buffer = nullptr;
  EXPECT_THAT(Refusal(desc), HasSubstr("missing or too small"));
}

TEST_F(PlanTest, UnboundSlotsAreRefused) {
  trine_plan_desc desc = plan_->Desc();
  desc.n_bindings = 2;
  EXPECT_THAT(Refusal(desc), HasSubstr("slot 2 is not bound"));
}

TEST_F(PlanTest, TellsWhereTheTimeGoesWhileItIsAsked) {
  ASSERT_EQ(plan_->Create(&err_), TRINE_OK) << err_.message;
  host_.profiling = 1;
  ASSERT_EQ(plan_->Run(1, &err_), TRINE_OK) << err_.message;
  EXPECT_THAT(host_.op_times, ElementsAre("quantize", "matmul q8_0"));
  host_.profiling = 0;
  ASSERT_EQ(plan_->Run(1, &err_), TRINE_OK) << err_.message;
  EXPECT_EQ(host_.op_times.size(), 2u);
}

class NoTimestampsTest : public PlanTest {
 protected:
  NoTimestampsTest() : PlanTest(WithoutTimestamps()) {}
  static DeviceQuery WithoutTimestamps() {
    DeviceQuery query = testing::IntelXe1();
    query.queue_families[0].timestampValidBits = 0;
    return query;
  }
};

TEST_F(NoTimestampsTest, RunsWithoutTellingTimes) {
  ASSERT_EQ(plan_->Create(&err_), TRINE_OK) << err_.message;
  host_.profiling = 1;
  EXPECT_EQ(plan_->Run(1, &err_), TRINE_OK) << err_.message;
  EXPECT_TRUE(host_.op_times.empty());
}

}  // namespace
}  // namespace trine::vulkan
