// Injects driver faults below the plugin's table: each call returns a status and a message, nothing
// leaks, and unaffected devices go on.
#include <stdlib.h>

#include <functional>
#include <memory>

#include "backends/vulkan/exec/verdicts.h"
#include "backends/vulkan/testing/device_fixtures.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/vulkan_plugin/plugin_session.h"

namespace trine::vulkan {
namespace {

using testing::Alloc;
using testing::FakeDriver;
using testing::FakeHost;
using ::testing::HasSubstr;
using testing::PlanOnDevice;
using testing::Table;

// All functions that may run out of memory.
const char* const kAllocating[] = {
    "vkCreateDevice",
    "vkAllocateMemory",
    "vkMapMemory",
    "vkCreateBuffer",
    "vkBindBufferMemory",
    "vkCreateShaderModule",
    "vkCreatePipelineLayout",
    "vkCreatePipelineCache",
    "vkCreateDescriptorSetLayout",
    "vkCreateDescriptorPool",
    "vkCreateComputePipelines",
    "vkAllocateDescriptorSets",
    "vkCreateCommandPool",
    "vkAllocateCommandBuffers",
    "vkBeginCommandBuffer",
    "vkEndCommandBuffer",
    "vkQueueSubmit",
    "vkWaitSemaphores",
    "vkCreateSemaphore",
};

class PluginFaultsTest : public ::testing::TestWithParam<DeviceQuery (*)()> {
 protected:
  PluginFaultsTest() : driver_({GetParam()(), testing::AmdRdna2Apu()}) {
    testing::UseFakeDriver();
    unsetenv("TRINE_VULKAN_TUNING");
    driver_.budget = uint64_t{1} << 33;
  }
  ~PluginFaultsTest() override {
    driver_.hangs = false;
    Close();
  }

  void Open(const char* options = "") {
    ForgetVerdicts();  // makes every session test its devices
    ASSERT_EQ(Table().open(host_.host(), options, &backend_, &err_), TRINE_OK) << err_.message;
    ASSERT_EQ(Table().device_count(backend_), 2u);
  }
  void Close() {
    for (trine_device*& device : devices_) {
      if (device != nullptr) Table().device_close(device);
      device = nullptr;
    }
    if (backend_ != nullptr) Table().close(backend_);
    backend_ = nullptr;
  }
  trine_status OpenDevice(uint32_t index) {
    return Table().device_open(backend_, index, &devices_[index], &err_);
  }

  // Does everything a host does with a device, from opening it to closing it. `call` receives each
  // call and returns whether to go on.
  using Call = std::function<bool(const char* name, const std::function<trine_status()>&)>;
  void Everything(const Call& call) {
    if (!call("device_open", [&] { return OpenDevice(0); })) return;
    PlanOnDevice plan(devices_[0]);
    // Objects that a lost device refused to make are not used.
    const auto run = [&](int64_t columns) {
      return plan.plan == nullptr || call("plan_run", [&] { return plan.Run(columns, &err_); });
    };
    call("buffer_alloc", [&] { return plan.MakeBuffers(&err_); }) &&
        call("buffer_write", [&] { return plan.Fill(&err_); }) &&
        call("plan_query", [&] { return plan.Query(&err_); }) &&
        call("plan_create", [&] { return plan.Create(&err_); }) && run(1) && run(64) &&
        call("copy_run", [&] { return plan.CopyInside(&err_); }) &&
        call("buffer_read", [&] { return plan.Read(&err_); });
  }

  // Counts the calls of a function in a session without a fault.
  int CallsOf(const char* function) {
    Open();
    const int before = driver_.calls[function];
    Everything([&](const char* name, const auto& run) {
      EXPECT_EQ(run(), TRINE_OK) << name << ": " << err_.message;
      return true;
    });
    Close();
    EXPECT_EQ(driver_.live, 0);
    return driver_.calls[function] - before;
  }

  FakeDriver driver_;
  FakeHost host_;
  trine_backend* backend_ = nullptr;
  trine_device* devices_[2] = {};
  trine_error err_{};
};

TEST_P(PluginFaultsTest, MemoryThatRunsOutAtAnyCallCostsThatCallOnly) {
  for (const char* function : kAllocating) {
    const int calls = CallsOf(function);
    for (int n = 1; n <= calls; ++n) {
      SCOPED_TRACE(std::string(function) + ", call " + std::to_string(n));
      Open();
      driver_.Fail(function, VK_ERROR_OUT_OF_HOST_MEMORY, n);
      Everything([&](const char* name, const auto& run) {
        err_ = {};
        const trine_status status = run();
        if (status == TRINE_OK) return true;
        EXPECT_EQ(status, TRINE_RESOURCE_EXHAUSTED) << name << ": " << err_.message;
        EXPECT_STRNE(err_.message, "") << name;
        EXPECT_EQ(run(), TRINE_OK) << name << " once more: " << err_.message;
        return true;
      });
      Close();
      ASSERT_EQ(driver_.live, 0);
    }
  }
}

TEST_P(PluginFaultsTest, ADeviceLostAtAnyCallIsLostUntilItIsClosed) {
  for (const char* function : {"vkQueueSubmit", "vkWaitSemaphores"}) {
    const int calls = CallsOf(function);
    ASSERT_GE(calls, 2) << "the runs";
    int lost_in = 0;
    for (int n = 1; n <= calls; ++n) {
      SCOPED_TRACE(std::string(function) + ", call " + std::to_string(n));
      Open();
      ASSERT_EQ(OpenDevice(1), TRINE_OK) << err_.message;
      driver_.Fail(function, VK_ERROR_DEVICE_LOST, n);
      bool lost = false;
      Everything([&](const char* name, const auto& run) {
        err_ = {};
        const trine_status status = run();
        if (status == TRINE_OK) {
          EXPECT_FALSE(lost) << name << " after the loss";
          return true;
        }
        EXPECT_EQ(status, TRINE_UNAVAILABLE) << name << ": " << err_.message;
        EXPECT_THAT(err_.message, HasSubstr("VK_ERROR_DEVICE_LOST")) << name;
        lost_in += !lost;
        lost = true;
        return true;
      });
      if (lost) {
        trine_buffer* buffer = nullptr;
        EXPECT_EQ(Alloc(devices_[0], 100, &buffer, &err_), TRINE_UNAVAILABLE);
        EXPECT_EQ(buffer, nullptr);
        PlanOnDevice plan(devices_[0]);
        const trine_graph graph = plan.graph();
        trine_op_support support{};
        support.struct_size = sizeof(support);
        EXPECT_EQ(Table().op_query(devices_[0], &graph, 0, nullptr, &support, &err_),
                  TRINE_UNAVAILABLE);
      }
      // The other device works, and the lost one does, too, after it is opened anew.
      {
        PlanOnDevice other(devices_[1]);
        EXPECT_EQ(other.MakeBuffers(&err_), TRINE_OK) << err_.message;
        EXPECT_EQ(other.Query(&err_), TRINE_OK) << err_.message;
        EXPECT_EQ(other.Create(&err_), TRINE_OK) << err_.message;
        EXPECT_EQ(other.Run(1, &err_), TRINE_OK) << err_.message;
      }
      Table().device_close(devices_[0]);
      devices_[0] = nullptr;
      EXPECT_EQ(OpenDevice(0), TRINE_OK) << err_.message;
      trine_buffer* buffer = nullptr;
      ASSERT_EQ(Alloc(devices_[0], 100, &buffer, &err_), TRINE_OK) << err_.message;
      Table().buffer_free(buffer);
      Close();
      ASSERT_EQ(driver_.live, 0);
    }
    EXPECT_GE(lost_in, 2) << function;
  }
}

TEST_P(PluginFaultsTest, LossesReachTheSignalsOfARun) {
  Open();
  ASSERT_EQ(OpenDevice(0), TRINE_OK) << err_.message;
  PlanOnDevice plan(devices_[0]);
  ASSERT_EQ(plan.MakeBuffers(&err_), TRINE_OK);
  ASSERT_EQ(plan.Query(&err_), TRINE_OK);
  ASSERT_EQ(plan.Create(&err_), TRINE_OK);
  trine_timeline* timeline = nullptr;
  ASSERT_EQ(Table().timeline_create(devices_[0], 0, &timeline, &err_), TRINE_OK);
  const trine_point point{timeline, 1};
  trine_sync sync{};
  sync.n_signals = 1;
  sync.point_stride = sizeof(point);
  sync.signals = &point;
  driver_.Fail("vkQueueSubmit", VK_ERROR_DEVICE_LOST);
  EXPECT_EQ(plan.Run(1, &err_, sync), TRINE_OK) << "the signal tells";
  EXPECT_EQ(Table().timeline_wait(timeline, 1, UINT64_MAX, &err_), TRINE_UNAVAILABLE);
  EXPECT_THAT(err_.message, HasSubstr("VK_ERROR_DEVICE_LOST"));
  EXPECT_EQ(plan.Run(1, &err_), TRINE_UNAVAILABLE);
  Table().timeline_destroy(timeline);
}

// A run with signals returns at once. Whoever waits for its signals for long enough finds out.
TEST_P(PluginFaultsTest, SignalledWorkThatNeverEndsCostsTheDevice) {
  Open("timeout_ms=2000");
  ASSERT_EQ(OpenDevice(0), TRINE_OK) << err_.message;
  PlanOnDevice plan(devices_[0]);
  ASSERT_EQ(plan.MakeBuffers(&err_), TRINE_OK);
  ASSERT_EQ(plan.Query(&err_), TRINE_OK);
  ASSERT_EQ(plan.Create(&err_), TRINE_OK);
  trine_timeline* timeline = nullptr;
  ASSERT_EQ(Table().timeline_create(devices_[0], 0, &timeline, &err_), TRINE_OK);
  const trine_point point{timeline, 1};
  trine_sync sync{};
  sync.n_signals = 1;
  sync.point_stride = sizeof(point);
  sync.signals = &point;
  driver_.hangs = true;
  ASSERT_EQ(plan.Run(1, &err_, sync), TRINE_OK) << err_.message;
  EXPECT_EQ(Table().timeline_wait(timeline, 1, 1'000'000, &err_), TRINE_DEADLINE_EXCEEDED);
  EXPECT_EQ(Table().timeline_wait(timeline, 1, UINT64_MAX, &err_), TRINE_UNAVAILABLE);
  EXPECT_THAT(err_.message, HasSubstr("has not finished its work in 2000 ms"));
  driver_.hangs = false;
  EXPECT_EQ(plan.Run(1, &err_), TRINE_UNAVAILABLE) << "for good";
  Table().timeline_destroy(timeline);
}

TEST_P(PluginFaultsTest, WorkThatNeverEndsCostsTheDevice) {
  Open("timeout_ms=20");
  ASSERT_EQ(OpenDevice(0), TRINE_OK) << err_.message;
  ASSERT_EQ(OpenDevice(1), TRINE_OK) << err_.message;
  auto plan = std::make_unique<PlanOnDevice>(devices_[0]);
  PlanOnDevice other(devices_[1]);
  for (PlanOnDevice* p : {plan.get(), &other}) {
    ASSERT_EQ(p->MakeBuffers(&err_), TRINE_OK);
    ASSERT_EQ(p->Query(&err_), TRINE_OK);
    ASSERT_EQ(p->Create(&err_), TRINE_OK);
  }
  driver_.hangs = true;
  EXPECT_EQ(plan->Run(1, &err_), TRINE_UNAVAILABLE);
  EXPECT_THAT(err_.message, HasSubstr("has not finished its work in 20 ms"));
  driver_.hangs = false;
  EXPECT_EQ(plan->Run(1, &err_), TRINE_UNAVAILABLE) << "for good";
  EXPECT_EQ(plan->Read(&err_), TRINE_UNAVAILABLE);
  EXPECT_EQ(plan->CopyInside(&err_), TRINE_UNAVAILABLE);
  EXPECT_EQ(other.Run(1, &err_), TRINE_OK) << err_.message;
  // Work that may still be running keeps what it uses.
  const int live = driver_.live, waits = driver_.calls["vkDeviceWaitIdle"];
  plan.reset();
  Table().device_close(devices_[0]);
  devices_[0] = nullptr;
  EXPECT_EQ(driver_.live, live);
  EXPECT_EQ(driver_.calls["vkDeviceWaitIdle"], waits) << "which would wait for ever";
  EXPECT_EQ(other.Run(64, &err_), TRINE_OK) << err_.message;
}

TEST_P(PluginFaultsTest, ASelfTestThatNeverEndsIsNoExactDevice) {
  Open("timeout_ms=20");
  driver_.hangs = true;
  trine_device_info info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(Table().device_info(backend_, 0, &info, &err_), TRINE_OK);
  EXPECT_EQ(info.numerics, static_cast<uint32_t>(TRINE_NUMERICS_FAST));
  ASSERT_FALSE(host_.logs.empty());
  EXPECT_THAT(host_.logs.back(), HasSubstr("could not be tested"));
}

class ImportFaultsTest : public PluginFaultsTest {
 protected:
  ImportFaultsTest() : pages_(static_cast<std::byte*>(aligned_alloc(4096, 8192))) {}
  ~ImportFaultsTest() override { free(pages_); }

  void OpenIt(const char* options = "") {
    Open(options);
    ASSERT_EQ(OpenDevice(0), TRINE_OK) << err_.message;
  }

  trine_status Import(void* host, uint64_t bytes, uint32_t flags = 0) {
    trine_import_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.memory = TRINE_MEMORY_WEIGHTS;
    desc.flags = flags;
    desc.host_ptr = host;
    desc.bytes = bytes;
    const int live = driver_.live;
    err_ = {};
    buffer_ = nullptr;
    const trine_status status = Table().buffer_import(devices_[0], &desc, &buffer_, &err_);
    if (status != TRINE_OK) {
      EXPECT_EQ(buffer_, nullptr);
      EXPECT_EQ(driver_.live, live);
      EXPECT_STRNE(err_.message, "");
    }
    return status;
  }

  std::byte* pages_;
  trine_buffer* buffer_ = nullptr;
};

TEST_P(ImportFaultsTest, RefusalsAreSentences) {
  OpenIt();
  driver_.Fail("vkGetMemoryHostPointerPropertiesEXT", VK_ERROR_INVALID_EXTERNAL_HANDLE);
  EXPECT_EQ(Import(pages_, 8192), TRINE_UNIMPLEMENTED);
  driver_.Fail("vkAllocateMemory", VK_ERROR_INVALID_EXTERNAL_HANDLE);
  EXPECT_EQ(Import(pages_, 8192), TRINE_UNIMPLEMENTED);
  driver_.Fail("vkCreateBuffer", VK_ERROR_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(Import(pages_, 8192), TRINE_RESOURCE_EXHAUSTED);
  EXPECT_EQ(Import(pages_ + 64, 4096), TRINE_INVALID_ARGUMENT);
  EXPECT_EQ(Import(pages_, 100), TRINE_INVALID_ARGUMENT);
  EXPECT_EQ(Import(nullptr, 4096), TRINE_INVALID_ARGUMENT);
  EXPECT_EQ(Import(pages_, 8192), TRINE_OK) << err_.message;
  Table().buffer_free(buffer_);
}

TEST_P(ImportFaultsTest, ReadOnlyPagesAreNotWritten) {
  OpenIt();
  ASSERT_EQ(Import(pages_, 8192, TRINE_IMPORT_READ_ONLY), TRINE_OK) << err_.message;
  EXPECT_EQ(Table().buffer_write(buffer_, 0, "x", 1, &err_), TRINE_INVALID_ARGUMENT);
  EXPECT_THAT(err_.message, HasSubstr("read-only"));
  Table().buffer_free(buffer_);
}

// A driver may import memory and then read it wrongly, or lose the device.
TEST_P(ImportFaultsTest, WhatFailedWhenItWasTriedIsRefused) {
  driver_.Fail("vkGetMemoryHostPointerPropertiesEXT", VK_ERROR_INVALID_EXTERNAL_HANDLE, 2);
  OpenIt();
  EXPECT_EQ(Import(pages_, 8192, TRINE_IMPORT_READ_ONLY), TRINE_UNIMPLEMENTED);
  EXPECT_STREQ(err_.message,
               "mapped files are not imported: the driver says VK_ERROR_INVALID_EXTERNAL_HANDLE");
  EXPECT_EQ(Import(pages_, 8192), TRINE_OK) << err_.message;
  Table().buffer_free(buffer_);
  Close();
  driver_.Fail("vkGetMemoryHostPointerPropertiesEXT", VK_ERROR_INVALID_EXTERNAL_HANDLE);
  OpenIt();
  EXPECT_EQ(Import(pages_, 8192), TRINE_UNIMPLEMENTED);
  EXPECT_THAT(err_.message, HasSubstr("memory is not imported: the driver says"));
  EXPECT_EQ(Import(pages_, 8192, TRINE_IMPORT_READ_ONLY), TRINE_OK) << err_.message;
  Table().buffer_free(buffer_);
}

TEST_P(ImportFaultsTest, WhatWasNotTriedIsNotRefused) {
  driver_.Fail("vkGetMemoryHostPointerPropertiesEXT", VK_ERROR_OUT_OF_HOST_MEMORY, 1, true);
  OpenIt();
  driver_.Fail("vkGetMemoryHostPointerPropertiesEXT", VK_SUCCESS);
  EXPECT_EQ(Import(pages_, 8192), TRINE_OK) << err_.message;
  Table().buffer_free(buffer_);
}

TEST_P(ImportFaultsTest, AHangInTheTrialIsNotWaitedForLong) {
  Open();
  trine_device_info info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(Table().device_info(backend_, 0, &info, &err_), TRINE_OK);
  Close();
  const int waits = driver_.calls["vkWaitSemaphores"];  // the last two belong to the trial
  Open();
  driver_.Fail("vkWaitSemaphores", VK_TIMEOUT, waits - 1);
  driver_.wait_timeouts.clear();
  ASSERT_EQ(Table().device_info(backend_, 0, &info, &err_), TRINE_OK);
  EXPECT_EQ(driver_.wait_timeouts.back(), uint64_t{10'000'000'000});
  EXPECT_EQ(info.imports, 0u) << "mapped files were not tried";
  EXPECT_STREQ(info.import_refusal, "memory: the device did not finish and was given up");
  ASSERT_EQ(OpenDevice(0), TRINE_OK) << err_.message;
  EXPECT_EQ(Import(pages_, 8192), TRINE_UNIMPLEMENTED);
  EXPECT_EQ(Import(pages_, 8192, TRINE_IMPORT_READ_ONLY), TRINE_OK) << err_.message;
  Table().buffer_free(buffer_);
}

class NoImportTest : public ImportFaultsTest {};

// Its device_info says so: import_alignment is 0.
TEST_P(NoImportTest, ADeviceWithMemoryOfItsOwnRefuses) {
  OpenIt();
  for (const uint32_t flags : {0u, uint32_t{TRINE_IMPORT_READ_ONLY}}) {
    EXPECT_EQ(Import(pages_, 8192, flags), TRINE_UNIMPLEMENTED);
    EXPECT_THAT(err_.message, HasSubstr("has memory of its own and imports none"));
  }
}

// A device whose memory the host sees, and one with memory of its own that takes copies.
const auto kDevices = ::testing::Values(testing::IntelXe1, testing::NvidiaDiscrete);
const auto kNames = [](const ::testing::TestParamInfo<DeviceQuery (*)()>& info) {
  return std::string(info.index == 0 ? "Unified" : "Discrete");
};
INSTANTIATE_TEST_SUITE_P(Devices, PluginFaultsTest, kDevices, kNames);
INSTANTIATE_TEST_SUITE_P(Unified, ImportFaultsTest, ::testing::Values(testing::IntelXe1));
INSTANTIATE_TEST_SUITE_P(Discrete, NoImportTest, ::testing::Values(testing::NvidiaDiscrete));

}  // namespace
}  // namespace trine::vulkan
