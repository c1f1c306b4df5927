// Tests all parts together on a real driver. Validation and synchronisation validation must report
// nothing. TRINE_VULKAN_VALIDATE=0 turns them off, for machines without the layers.
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <vector>

#include "backends/vulkan/exec/queue.h"
#include "backends/vulkan/exec/recorder.h"
#include "backends/vulkan/exec/transfer.h"
#include "backends/vulkan/testing/hooks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/quant/scalar.h"
#include "kernels/vulkan/runs/dispatch.h"
#include "kernels/vulkan/spirv/shaders.h"

namespace trine::vulkan {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr uint64_t kTimeoutNs = 60'000'000'000;

bool Validating() {
  const char* value = std::getenv("TRINE_VULKAN_VALIDATE");
  return value == nullptr || std::strcmp(value, "0") != 0;
}

// Returns floats of every exponent, NaNs and infinities included.
std::vector<float> AnyFloats(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> floats(n);
  for (float& f : floats) {
    const uint32_t bits = random();
    std::memcpy(&f, &bits, sizeof(f));
  }
  return floats;
}

std::vector<uint32_t> Bits(const std::vector<float>& floats) {
  std::vector<uint32_t> bits(floats.size());
  std::memcpy(bits.data(), floats.data(), floats.size() * sizeof(float));
  return bits;
}

std::vector<float> Sum(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> y(a.size());
  for (size_t i = 0; i < a.size(); ++i) y[i] = quant::Canon(a[i] + b[i]);
  return y;
}

class OnDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto global = LoadVulkan();
    if (global.ok()) Open(*global);
    if (device_ == nullptr) {
      const std::string why = global.ok() ? why_ : std::string(global.status().message());
      if (TRINE_VULKAN_REQUIRED) FAIL() << why;
      GTEST_SKIP() << why;
    }
  }

  void Open(const GlobalTable& global) {
    InstanceOptions options;
    options.allow_cpu = true;
    options.validate = Validating();
    options.on_message = [this](const std::string& text) { said_.push_back(text); };
    auto instance = Instance::Create(global, options);
    if (!instance.ok()) {
      why_ = std::string(instance.status().message());
      return;
    }
    instance_ = *std::move(instance);
    for (const FoundDevice& found : instance_->devices()) {
      if (!found.reason.empty()) continue;
      auto device = Device::Create(*instance_, found);
      if (device.ok()) return Equip(*std::move(device));
      why_ = std::string(device.status().message());
      return;
    }
    why_ = instance_->NoDeviceReason();
  }

  void Equip(std::unique_ptr<Device> device) {
    device_ = std::move(device);
    tuning_ = ChooseTuning(device_->caps());
    memory_ = std::make_unique<Memory>(*device_);
    pipelines_ = *Pipelines::Create(*device_, "");
    queue_ = *Queue::Create(*device_);
    transfer_ = std::make_unique<Transfer>(*device_, *memory_, *pipelines_, *queue_, tuning_);
  }

  void Close() {
    recordings_.clear();
    transfer_.reset();
    queue_.reset();
    pipelines_.reset();
    memory_.reset();
    device_.reset();
    instance_.reset();
  }

  void TearDown() override {
    Close();
    for (const std::string& text : said_) ADD_FAILURE() << text;
  }

  Allocation Place(const std::vector<float>& floats) {
    auto allocation = memory_->Allocate(floats.size() * sizeof(float), MemoryUse::kDevice);
    EXPECT_TRUE(allocation.ok()) << allocation.status();
    Set(*allocation, floats);
    return *std::move(allocation);
  }
  void Set(const Allocation& allocation, const std::vector<float>& floats) {
    const absl::Status status =
        transfer_->Write(allocation, 0, floats.data(), floats.size() * sizeof(float));
    EXPECT_TRUE(status.ok()) << status;
  }
  std::vector<float> Get(const Allocation& allocation) {
    std::vector<float> floats(allocation.bytes() / sizeof(float));
    const absl::Status status = transfer_->Read(allocation, 0, floats.data(), allocation.bytes());
    EXPECT_TRUE(status.ok()) << status;
    return floats;
  }

  Recorder Record(bool timestamps = false) {
    return Recorder(*device_, *pipelines_, tuning_, {timestamps});
  }
  absl::Status Add(Recorder& recorder, const BufferRange& a, const BufferRange& b,
                   const BufferRange& y, uint32_t n, uint32_t subgroup_size = 0) {
    Dispatch dispatch;
    dispatch.shader = &shaders::add_f32;
    dispatch.constants = {tuning_.elementwise_workgroup};
    dispatch.push = std::as_bytes(std::span(&n, 1));
    dispatch.buffers = {Read(a), Read(b), Write(y)};
    dispatch.groups = {CappedGroups(n, tuning_.elementwise_workgroup), 1, 1};
    dispatch.subgroup_size = subgroup_size;
    return recorder.Add(dispatch);
  }
  Recording& Finish(Recorder& recorder) {
    auto recording = recorder.Finish();
    EXPECT_TRUE(recording.ok()) << recording.status();
    recordings_.push_back(*std::move(recording));
    return *recordings_.back();
  }
  void Run(const Recording& recording) {
    const auto point = queue_->Submit(recording);
    ASSERT_TRUE(point.ok()) << point.status();
    const absl::Status status = queue_->Wait(*point, kTimeoutNs);
    ASSERT_TRUE(status.ok()) << status;
  }

  std::vector<std::string> said_;
  std::string why_;
  std::unique_ptr<Instance> instance_;
  std::unique_ptr<Device> device_;
  Tuning tuning_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Pipelines> pipelines_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Transfer> transfer_;
  std::vector<std::unique_ptr<Recording>> recordings_;
};

TEST_F(OnDeviceTest, AddsWithTheContractsBits) {
  const uint32_t n = 100'003;
  const std::vector<float> a = AnyFloats(n, 1), b = AnyFloats(n, 2);
  const Allocation da = Place(a), db = Place(b);
  std::vector<float> canary(n + 64, 7.0f);
  const Allocation dy = Place(canary);
  Recorder recorder = Record();
  ASSERT_TRUE(Add(recorder, da.range(), db.range(), dy.range(), n).ok());
  Run(Finish(recorder));
  std::vector<float> want = Sum(a, b);
  want.resize(n + 64, 7.0f);
  EXPECT_EQ(Bits(Get(dy)), Bits(want));
}

TEST_F(OnDeviceTest, StepsSeeWhatWasDoneBefore) {
  const uint32_t n = 5000;
  const std::vector<float> a = AnyFloats(n, 3), b = AnyFloats(n, 4);
  const Allocation da = Place(a), db = Place(b), dc = Place(a), dd = Place(a);
  const Allocation ones = Place(std::vector<float>(n, 1.0f));
  Recorder recorder = Record();
  ASSERT_TRUE(Add(recorder, da.range(), db.range(), dc.range(), n).ok());
  ASSERT_TRUE(Add(recorder, dc.range(), db.range(), dd.range(), n).ok());
  ASSERT_TRUE(recorder.Copy(dd.range(), dc.range()).ok());
  ASSERT_TRUE(Add(recorder, dc.range(), da.range(), db.range(), n).ok());
  ASSERT_TRUE(recorder.Copy(ones.range(), dc.range()).ok());
  ASSERT_TRUE(Add(recorder, db.range(), dc.range(), dd.range(), n).ok());
  const Recording& recording = Finish(recorder);
  EXPECT_EQ(recording.barriers(), 5u);
  Run(recording);
  const std::vector<float> d = Sum(Sum(a, b), b), b2 = Sum(d, a);
  EXPECT_EQ(Bits(Get(db)), Bits(b2));
  EXPECT_EQ(Bits(Get(dd)), Bits(Sum(b2, std::vector<float>(n, 1.0f))));
}

TEST_F(OnDeviceTest, ReplaysWithWhatTheHostHasWritten) {
  const uint32_t n = 777;
  const std::vector<float> b = AnyFloats(n, 5);
  const Allocation da = Place(b), db = Place(b), dy = Place(b);
  Recorder recorder = Record();
  ASSERT_TRUE(Add(recorder, da.range(), db.range(), dy.range(), n).ok());
  const Recording& recording = Finish(recorder);
  for (uint32_t run = 0; run < 5; ++run) {
    const std::vector<float> a = AnyFloats(n, 10 + run);
    Set(da, a);
    Run(recording);
    EXPECT_EQ(Bits(Get(dy)), Bits(Sum(a, b))) << "run " << run;
  }
}

// Runs y += x many times, each in its own submission and all in flight at once.
TEST_F(OnDeviceTest, OverlappingRunsKeepTheirOrder) {
  const uint32_t n = 1000;
  const std::vector<float> x(n, 1.0f);
  const Allocation dx = Place(x), dy = Place(x), dz = Place(x);
  tuning_.submit_dispatches = 1;
  Recorder recorder = Record();
  ASSERT_TRUE(Add(recorder, dx.range(), dy.range(), dz.range(), n).ok());
  ASSERT_TRUE(Add(recorder, dx.range(), dz.range(), dy.range(), n).ok());
  const Recording& recording = Finish(recorder);
  EXPECT_EQ(recording.parts(), 2u);
  uint64_t point = 0;
  for (int i = 0; i < 50; ++i) {
    const auto submitted = queue_->Submit(recording);
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    point = *submitted;
  }
  ASSERT_TRUE(queue_->Wait(point, kTimeoutNs).ok());
  EXPECT_EQ(*queue_->Reached(), 100u);
  EXPECT_EQ(Get(dy), std::vector<float>(n, 101.0f));
}

TEST_F(OnDeviceTest, TheSubgroupSizeChangesNothing) {
  const DeviceCaps& caps = device_->caps();
  if (!caps.can_require_subgroup_size) GTEST_SKIP() << "the device can't be held to one";
  const uint32_t n = 3000;
  const std::vector<float> a = AnyFloats(n, 7), b = AnyFloats(n, 8);
  const Allocation da = Place(a), db = Place(b), dy = Place(a);
  for (uint32_t size = caps.min_subgroup_size; size <= caps.max_subgroup_size; size *= 2) {
    tuning_.elementwise_workgroup =
        std::min<uint32_t>(256, size * std::min<uint32_t>(caps.max_workgroup_subgroups, 4));
    Recorder recorder = Record();
    const absl::Status status = Add(recorder, da.range(), db.range(), dy.range(), n, size);
    ASSERT_TRUE(status.ok()) << status;
    Run(Finish(recorder));
    EXPECT_EQ(Bits(Get(dy)), Bits(Sum(a, b))) << size;
  }
}

TEST_F(OnDeviceTest, StagedCopiesArriveWhole) {
  const std::vector<float> a = AnyFloats((Transfer::kStagingBytes + 12) / sizeof(float), 9);
  const std::vector<float> zero(a.size());
  const Allocation d = Place(zero);
  ASSERT_TRUE(transfer_->WriteStaged(d.range(), a.data()).ok());
  EXPECT_EQ(Bits(Get(d)), Bits(a));
  std::vector<float> back(a.size());
  ASSERT_TRUE(transfer_->ReadStaged(d.range(), back.data()).ok());
  EXPECT_EQ(Bits(back), Bits(a));
}

// Imports anonymous memory and a mapped file. A driver may refuse either, but must say so.
TEST_F(OnDeviceTest, WorksOnMemoryOfTheHost) {
  const uint64_t bytes = 1 << 16;
  const uint32_t n = bytes / sizeof(float);
  const std::vector<float> a = AnyFloats(n, 10), b = AnyFloats(n, 11);
  char path[] = "/tmp/trine-import-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  unlink(path);
  ASSERT_EQ(write(fd, a.data(), bytes), static_cast<ssize_t>(bytes));
  void* file = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  void* anonymous =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(file, MAP_FAILED);
  ASSERT_NE(anonymous, MAP_FAILED);
  {
    auto da = memory_->Import(file, bytes), dy = memory_->Import(anonymous, bytes);
    const bool taken = dy.ok();
    if (device_->caps().kind == DeviceKind::kCpu) {
      EXPECT_TRUE(da.ok() && dy.ok()) << da.status() << dy.status();
    }
    if (!da.ok()) {
      EXPECT_THAT(std::string(da.status().message()), HasSubstr("import"));
      da = Place(a);
    }
    if (!dy.ok()) {
      EXPECT_THAT(std::string(dy.status().message()), HasSubstr("import"));
      dy = Place(b);
    }
    const Allocation db = Place(b);
    Recorder recorder = Record();
    ASSERT_TRUE(Add(recorder, da->range(), db.range(), dy->range(), n).ok());
    Run(Finish(recorder));
    EXPECT_EQ(Bits(Get(*dy)), Bits(Sum(a, b)));
    if (taken) {
      EXPECT_EQ(std::memcmp(anonymous, Sum(a, b).data(), bytes), 0) << "no copy was made";
    }
    recordings_.clear();
  }
  munmap(file, bytes);
  munmap(anonymous, bytes);
  close(fd);
}

TEST_F(OnDeviceTest, TellsHowLongStepsTook) {
  if (device_->caps().timestamp_bits == 0) GTEST_SKIP() << "the device has no timestamps";
  const uint32_t n = 1 << 20;
  const std::vector<float> a(n, 1.0f);
  const Allocation da = Place(a), dy = Place(a);
  Recorder recorder = Record(true);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Add(recorder, da.range(), da.range(), dy.range(), n).ok());
  }
  const Recording& recording = Finish(recorder);
  for (int run = 0; run < 2; ++run) {
    Run(recording);
    const auto times = recording.Times();
    ASSERT_TRUE(times.ok()) << times.status();
    ASSERT_EQ(times->size(), 3u);
    double total = 0;
    for (const StepTime& time : *times) total += time.ns;
    EXPECT_GT(total, 0);
    EXPECT_LT(total, 60e9);
  }
}

TEST_F(OnDeviceTest, KeepsPipelinesBetweenRuns) {
  char folder[] = "/tmp/trine-pipelines-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/pipelines";
  for (int run = 0; run < 2; ++run) {
    pipelines_ = *Pipelines::Create(*device_, path);
    const uint32_t constants[] = {64};
    ASSERT_TRUE(pipelines_->Get(shaders::add_f32, constants, 0).ok());
    const absl::Status status = pipelines_->Save();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  std::filesystem::remove_all(folder);
}

TEST_F(OnDeviceTest, CompilesEveryShaderTheDeviceCan) {
  for (const Shader* shader : AllShaders()) {
    if (!MissingForShader(device_->caps(), *shader).empty()) continue;
    const uint32_t constants[] = {tuning_.elementwise_workgroup};
    const auto pipeline = pipelines_->Get(*shader, constants, 0);
    EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  }
}

VKAPI_ATTR void VKAPI_CALL NoBarrier(VkCommandBuffer, VkPipelineStageFlags, VkPipelineStageFlags,
                                     VkDependencyFlags, uint32_t, const VkMemoryBarrier*, uint32_t,
                                     const VkBufferMemoryBarrier*, uint32_t,
                                     const VkImageMemoryBarrier*) {}

// Checks that the layers report a missing barrier. Without this, their silence means nothing.
TEST_F(OnDeviceTest, TheLayersAreAwake) {
  if (!Validating()) GTEST_SKIP() << "TRINE_VULKAN_VALIDATE=0";
  Close();
  auto real = LoadVulkan();
  ASSERT_TRUE(real.ok());
  auto hooked = LoadGlobal(testing::Replace(real->GetInstanceProcAddr, "vkCmdPipelineBarrier",
                                            reinterpret_cast<PFN_vkVoidFunction>(NoBarrier)));
  ASSERT_TRUE(hooked.ok());
  Open(*hooked);
  ASSERT_NE(device_, nullptr) << why_;
  {
    const uint32_t n = 256;
    const std::vector<float> a(n, 1.0f);
    const Allocation da = Place(a), db = Place(a), dc = Place(a);
    Recorder recorder = Record();
    ASSERT_TRUE(Add(recorder, da.range(), da.range(), db.range(), n).ok());
    ASSERT_TRUE(Add(recorder, db.range(), da.range(), dc.range(), n).ok());
    Run(Finish(recorder));
    recordings_.clear();
  }
  EXPECT_GT(instance_->messages().count(), 0u);
  EXPECT_THAT(said_, Contains(HasSubstr("SYNC-HAZARD-READ-AFTER-WRITE")));
  said_.clear();
}

// Sets an environment variable for as long as this object lives.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    was_set_ = before != nullptr;
    if (was_set_) before_ = before;
    setenv(name, value, 1);
  }
  ~ScopedVariable() {
    if (was_set_) {
      setenv(name_, before_.c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  bool was_set_;
  std::string before_;
};

TEST_F(OnDeviceTest, SaysThatNoDriverIsInstalled) {
  Close();
  const ScopedVariable now("VK_DRIVER_FILES", "/nonexistent/driver.json");
  const ScopedVariable older("VK_ICD_FILENAMES", "/nonexistent/driver.json");
  auto global = LoadVulkan();
  ASSERT_TRUE(global.ok());
  const auto instance = Instance::Create(*global, InstanceOptions{});
  EXPECT_TRUE(absl::IsNotFound(instance.status())) << instance.status();
  EXPECT_THAT(std::string(instance.status().message()), HasSubstr("no Vulkan driver"));
}

}  // namespace
}  // namespace trine::vulkan
