// Tests recorded runs of kernels, and a device that is lost.
#include "backends/hip/recording.h"

#include <cstring>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/hip/gpu/emulated_runtime.h"
#include "kernels/hip/ops/ops.h"

namespace trine::hip {
namespace {

using emulator::Call;
using ::testing::HasSubstr;

class HipRecordingTest : public ::testing::Test {
 protected:
  HipRecordingTest() {
    emulator::Reset({});
    gpu_ = *GpuDevice::Open(0);
    host_ = *gpu_->Allocate(1024, /*of_host=*/true);
    device_ = *gpu_->Allocate(1024, /*of_host=*/false);
  }
  ~HipRecordingTest() override { emulator::Reset({}); }

  // Moves the host's first half to the device and back to its second half, by copy and by kernel.
  Work MakeWork(uint64_t bytes) {
    Work work;
    work.in.push_back({device_.data(), host_.data(), bytes});
    const Piece piece{device_.data() + 512, device_.data(), bytes};
    work.launches.push_back(CopyPiecesLaunch({&piece, 1}));
    work.launches.back().label = "copy";
    work.out.push_back({host_.data() + 512, device_.data() + 512, bytes});
    return work;
  }
  // Counts the bytes of the host's second half that are right after a run.
  size_t Arrived() {
    size_t n = 0;
    while (n < 512 && host_.data()[512 + n] == host_.data()[n]) ++n;
    return n;
  }
  void Fill(int seed) {
    for (int i = 0; i < 512; ++i) host_.data()[i] = static_cast<std::byte>(i * seed + 1);
    std::memset(host_.data() + 512, 0, 512);
  }

  std::unique_ptr<GpuDevice> gpu_;
  GpuMemory host_, device_;
};

TEST_F(HipRecordingTest, RunsAgainAndAgain) {
  for (const bool graphs : {true, false}) {
    const auto recording = Recording::Create(gpu_.get(), MakeWork(512), graphs);
    ASSERT_TRUE(recording.ok()) << recording.status();
    for (const int seed : {3, 5, 7}) {
      Fill(seed);
      ASSERT_TRUE((*recording)->Run().ok());
      EXPECT_EQ(Arrived(), 512u);
    }
    ASSERT_TRUE((*recording)->Replace(MakeWork(100)).ok());
    Fill(9);
    ASSERT_TRUE((*recording)->Run().ok());
    EXPECT_EQ(Arrived(), 100u);
  }
}

TEST_F(HipRecordingTest, TellsTimesByName) {
  const auto recording = *Recording::Create(gpu_.get(), MakeWork(512), true);
  Fill(3);
  std::vector<std::string> names;
  ASSERT_TRUE(
      recording->RunTimed(nullptr, [&](const char* name, uint64_t) { names.push_back(name); })
          .ok());
  EXPECT_THAT(names, ::testing::ElementsAre("copy"));
  EXPECT_EQ(Arrived(), 512u);
}

TEST_F(HipRecordingTest, ALostDeviceStaysLost) {
  for (const Call call : {Call::kCopy, Call::kStart, Call::kSynchronize}) {
    emulator::Reset({});
    auto gpu = *GpuDevice::Open(0);
    std::swap(gpu, gpu_);
    const auto recording = *Recording::Create(gpu_.get(), MakeWork(512), false);
    emulator::DeviceSettings settings;
    settings.failing = call;
    emulator::Reset(settings);
    const absl::Status status = recording->Run();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("a fault that was asked for"));
    emulator::Reset({});  // even if its runtime works again
    EXPECT_TRUE(absl::IsUnavailable(gpu_->Health()));
    std::swap(gpu, gpu_);
  }
}

TEST_F(HipRecordingTest, WantOfMemoryLosesNothing) {
  emulator::DeviceSettings settings;
  settings.memory_bytes = 1 << 20;
  emulator::Reset(settings);
  EXPECT_TRUE(absl::IsResourceExhausted(gpu_->Allocate(2 << 20, false).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(gpu_->Allocate(UINT64_MAX, false).status()));
  EXPECT_TRUE(gpu_->Health().ok());
  EXPECT_TRUE(gpu_->Allocate(1 << 10, false).ok());
}

TEST_F(HipRecordingTest, LargeCopiesGoInPieces) {
  constexpr size_t kBytes = (20 << 20) + 17;  // more than the stages take at once
  std::vector<std::byte> there(kBytes), back(kBytes);
  for (size_t i = 0; i < kBytes; ++i) there[i] = static_cast<std::byte>(i * 31 + i / 255);
  const GpuMemory memory = *gpu_->Allocate(kBytes, false);
  ASSERT_TRUE(gpu_->Write(memory.data(), there.data(), kBytes).ok());
  ASSERT_TRUE(gpu_->Read(back.data(), memory.data(), kBytes).ok());
  EXPECT_TRUE(there == back);
}

}  // namespace
}  // namespace trine::hip
