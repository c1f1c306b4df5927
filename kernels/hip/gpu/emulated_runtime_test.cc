// Tests streams that nothing orders, and several devices.
#include "kernels/hip/gpu/emulated_runtime.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trine::hip {
namespace {

using emulator::Call;
using emulator::DeviceSettings;
using emulator::Pace;
using emulator::Peers;

class EmulatedRuntimeTest : public ::testing::Test {
 protected:
  ~EmulatedRuntimeTest() override {
    (void)gpuSetDevice(0);
    emulator::Reset({});
  }

  static DeviceSettings With(Pace pace, uint32_t devices = 1) {
    DeviceSettings settings;
    settings.pace = pace;
    settings.devices = devices;
    return settings;
  }
};

// Two streams and three pinned words: the first is copied over the second, and that over the third.
struct TwoStreams {
  TwoStreams() {
    EXPECT_EQ(gpuStreamCreate(&one), gpuSuccess);
    EXPECT_EQ(gpuStreamCreate(&other), gpuSuccess);
    EXPECT_EQ(gpuEventCreateUntimed(&event), gpuSuccess);
    void* memory = nullptr;
    EXPECT_EQ(gpuHostMalloc(&memory, 3 * sizeof(int)), gpuSuccess);
    words = static_cast<int*>(memory);
    words[0] = 7;
    words[1] = words[2] = 0;
  }
  ~TwoStreams() {
    EXPECT_EQ(gpuStreamDestroy(one), gpuSuccess);
    EXPECT_EQ(gpuStreamDestroy(other), gpuSuccess);
    EXPECT_EQ(gpuEventDestroy(event), gpuSuccess);
    EXPECT_EQ(gpuHostFree(words), gpuSuccess);
  }
  void Copy(int to, int from, gpuStream stream) const {
    EXPECT_EQ(gpuMemcpyAsync(words + to, words + from, sizeof(int), gpuMemcpyHostToDevice, stream),
              gpuSuccess);
  }

  gpuStream one = nullptr, other = nullptr;
  gpuEvent event = nullptr;
  int* words = nullptr;
};

TEST_F(EmulatedRuntimeTest, NothingOrdersTwoStreamsButEvents) {
  for (const bool ordered : {false, true}) {
    for (const Pace pace : {Pace::kOldest, Pace::kNewest}) {
      emulator::Reset(With(pace));
      const TwoStreams s;
      s.Copy(1, 0, s.one);
      if (ordered) {
        ASSERT_EQ(gpuEventRecord(s.event, s.one), gpuSuccess);
        ASSERT_EQ(gpuStreamWait(s.other, s.event), gpuSuccess);
      }
      s.Copy(2, 1, s.other);
      EXPECT_EQ(s.words[1], 0) << "nobody has waited";
      EXPECT_EQ(gpuStreamSynchronize(s.other), gpuSuccess);
      // If nothing orders the streams, the newest may go first and finds nothing.
      EXPECT_EQ(s.words[2], ordered || pace == Pace::kOldest ? 7 : 0);
    }
  }
}

TEST_F(EmulatedRuntimeTest, AnEventIsWaitedForAsItWasRecordedThen) {
  emulator::Reset(With(Pace::kNewest));
  const TwoStreams s;
  ASSERT_EQ(gpuStreamWait(s.other, s.event), gpuSuccess) << "never recorded: no wait";
  s.Copy(2, 1, s.other);
  s.Copy(1, 0, s.one);
  ASSERT_EQ(gpuEventRecord(s.event, s.one), gpuSuccess);
  EXPECT_EQ(gpuEventSynchronize(s.event), gpuSuccess);
  EXPECT_EQ(s.words[1], 7);
  EXPECT_EQ(s.words[2], 0);
}

TEST_F(EmulatedRuntimeTest, MemoryThatIsNotPinnedIsReadAtOnce) {
  emulator::Reset(With(Pace::kOldest));
  const TwoStreams s;
  int value = 5;
  ASSERT_EQ(gpuMemcpyAsync(s.words, &value, sizeof(int), gpuMemcpyHostToDevice, s.one), gpuSuccess);
  value = 6;
  ASSERT_EQ(gpuStreamSynchronize(s.one), gpuSuccess);
  EXPECT_EQ(s.words[0], 5);
  s.Copy(1, 0, s.one);
  s.words[0] = 9;  // pinned: read when the copy's turn comes
  ASSERT_EQ(gpuStreamSynchronize(s.one), gpuSuccess);
  EXPECT_EQ(s.words[1], 9);
}

TEST_F(EmulatedRuntimeTest, DevicesHaveTheirOwnMemoryAndFaults) {
  DeviceSettings settings = With(Pace::kAtOnce, 2);
  settings.memory_bytes = 1000;
  settings.failing = Call::kSynchronize;
  settings.failing_device = 1;
  emulator::Reset(settings);
  void *first = nullptr, *second = nullptr;
  size_t available = 0, total = 0;
  ASSERT_EQ(gpuSetDevice(0), gpuSuccess);
  ASSERT_EQ(gpuMalloc(&first, 800), gpuSuccess);
  ASSERT_EQ(gpuSetDevice(1), gpuSuccess);
  ASSERT_EQ(gpuMalloc(&second, 700), gpuSuccess);
  ASSERT_EQ(gpuMemGetInfo(&available, &total), gpuSuccess);
  EXPECT_EQ(available, 300u);
  EXPECT_NE(gpuStreamSynchronize(nullptr), gpuSuccess);
  EXPECT_NE(gpuMemGetInfo(&available, &total), gpuSuccess) << "lost";
  ASSERT_EQ(gpuSetDevice(0), gpuSuccess);
  EXPECT_EQ(gpuStreamSynchronize(nullptr), gpuSuccess);
  ASSERT_EQ(gpuMemGetInfo(&available, &total), gpuSuccess);
  EXPECT_EQ(available, 200u);
  EXPECT_EQ(gpuFree(first), gpuSuccess);
  EXPECT_EQ(gpuFree(second), gpuSuccess);
  EXPECT_EQ(emulator::PeakBytes(1), 700u);
  EXPECT_NE(gpuSetDevice(2), gpuSuccess);
}

TEST_F(EmulatedRuntimeTest, PeersCopyLieOrDoNeither) {
  for (const Peers peers : {Peers::kGood, Peers::kLying, Peers::kNone}) {
    DeviceSettings settings = With(Pace::kAtOnce, 2);
    settings.peers = peers;
    emulator::Reset(settings);
    char from[9] = "12345678", to[9] = "........";
    int can = 0;
    ASSERT_EQ(gpuDeviceCanAccessPeer(&can, 0, 1), gpuSuccess);
    EXPECT_EQ(can, peers == Peers::kNone ? 0 : 1);
    EXPECT_EQ(gpuMemcpyPeerAsync(to, 1, from, 0, 8, nullptr) == gpuSuccess, can == 1);
    EXPECT_STREQ(to, peers == Peers::kGood    ? "12345678"
                     : peers == Peers::kLying ? "12344678"
                                              : "........");
  }
}

TEST_F(EmulatedRuntimeTest, ACountWithAnErrorMeansNothing) {
  emulator::Reset(With(Pace::kAtOnce, 0));
  int count = 0;
  EXPECT_EQ(gpuGetDeviceCount(&count), gpuErrorNoDevice);
  EXPECT_NE(count, 0) << "whoever looks at it alone is to find out";
}

}  // namespace
}  // namespace trine::hip
