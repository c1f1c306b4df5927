// Plants faults in kernels: each is reported with its place, and nothing crashes.
#include "kernels/hip/gpu/emulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/hip/gpu/device.h"
#include "kernels/hip/gpu/runtime.h"

namespace trine::hip {
namespace {

using emulator::Call;
using emulator::DeviceSettings;
using emulator::Order;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kThreads = 128;

struct Args {
  uint32_t* out;
  uint32_t n;
};

Launch Of(void (*kernel)(Args), uint32_t* out = nullptr, uint32_t blocks = 1, uint32_t n = 0,
          uint32_t threads = kThreads) {
  return MakeLaunch(kernel, {blocks}, {threads}, Args{out, n});
}

class EmulatorTest : public ::testing::Test {
 protected:
  ~EmulatorTest() override {
    emulator::Configure({});
    emulator::Reset({});
  }
};

constexpr Order kOrders[] = {Order::kForward, Order::kReverse, Order::kRandom};

// Expects the fault under every schedule, then runs a correct kernel: no fault leaves a trace.
void ExpectTold(const Launch& launch, const std::string& what, const std::string& where) {
  static std::vector<uint32_t> out(kThreads);
  for (const uint32_t wave : {32u, 64u}) {
    for (const Order order : kOrders) {
      emulator::Configure({wave, order, 3});
      EXPECT_THAT(emulator::Run(launch), AllOf(HasSubstr(what), HasSubstr(where))) << wave;
    }
  }
  struct Sum {
    static void Kernel(Args args) {
      uint32_t v = ThreadX();
      for (int mask = 1; mask < 32; mask *= 2) v += LaneXor(v, mask);
      SyncBlock();
      args.out[ThreadX()] = v;
    }
  };
  ASSERT_EQ(emulator::Run(Of(Sum::Kernel, out.data())), "");
  EXPECT_EQ(out[31], 31u * 32 / 2);
  EXPECT_EQ(out[127], 31u * 32 / 2 + 32 * 96);
}

TRINE_KERNEL(kThreads) ShuffleOfSome(Args) {
  uint32_t v = ThreadX();
  if (BlockX() == 1 && ThreadX() / 32 == 2 && ThreadX() % 32 < 16) v = LaneXor(v, 1);
  SyncBlock();
}
TEST_F(EmulatorTest, AShuffleOfSomeLanes) {
  ExpectTold(Of(ShuffleOfSome, nullptr, 3), "elsewhere", "block (1, 0, 0), thread (64, 0, 0)");
}

TRINE_KERNEL(kThreads) ShufflesOfBranches(Args) {
  uint32_t v = ThreadX();
  if (ThreadX() % 2 == 0) {
    v = LaneXor(v, 1);
  } else {
    v = LaneXor(v, 1) + 1;
  }
  SyncBlock();
}
TEST_F(EmulatorTest, AShuffleInEachBranch) {
  ExpectTold(Of(ShufflesOfBranches), "different meetings", "block (0, 0, 0), thread ");
}

TRINE_KERNEL(kThreads) ReturnedLane(Args) {
  if (ThreadX() == 45) return;
  (void)LaneXor(ThreadX(), 1);
}
TEST_F(EmulatorTest, ALaneThatHasReturned) {
  ExpectTold(Of(ReturnedLane), "elsewhere", "block (0, 0, 0), thread (32, 0, 0)");
}

TRINE_KERNEL(kThreads) ReturnedGroup(Args args) {
  if (ThreadX() / 32 == 1) return;
  args.out[ThreadX()] = LaneRead(ThreadX(), 7);
}
TEST_F(EmulatorTest, AGroupThatHasReturnedIsNoFault) {
  for (const uint32_t wave : {32u, 64u}) {
    emulator::Configure({wave, Order::kForward, 1});
    std::vector<uint32_t> out(kThreads);
    EXPECT_EQ(emulator::Run(Of(ReturnedGroup, out.data())), "");
    EXPECT_EQ(out[31], 7u);
    EXPECT_EQ(out[127], 103u);
  }
}

TRINE_KERNEL(kThreads) HalfGroup(Args) { (void)LaneXor(ThreadX(), 1); }
TEST_F(EmulatorTest, AGroupThatIsNotWhole) {
  ExpectTold(Of(HalfGroup, nullptr, 1, 0, 48), "not whole", "thread (32, 0, 0)");
}

TRINE_KERNEL(kThreads) SkippedBarrier(Args) {
  if (ThreadX() != 100) SyncBlock();
}
TEST_F(EmulatorTest, ABarrierThatAThreadSkips) {
  ExpectTold(Of(SkippedBarrier), "barrier", "block (0, 0, 0), thread (0, 0, 0)");
}

TRINE_KERNEL(kThreads) MasksThatDiffer(Args) { (void)LaneXor(ThreadX(), ThreadX() == 70 ? 2 : 1); }
TEST_F(EmulatorTest, MasksThatAreNotTheSame) {
  ExpectTold(Of(MasksThatDiffer), "different masks", "thread (64, 0, 0)");
}

TRINE_KERNEL(kThreads) LaneThatIsNotThere(Args) { (void)LaneRead(ThreadX(), 32); }
TEST_F(EmulatorTest, ALaneThatIsNotThere) {
  ExpectTold(Of(LaneThatIsNotThere), "not there", "thread ");
}

TRINE_KERNEL(kThreads) SyncAgainstShuffle(Args) {
  if (ThreadX() >= 32) return;
  if (ThreadX() < 8) {
    SyncLanes();
  } else {
    (void)LaneXor(1.0f, 1);
  }
}
TEST_F(EmulatorTest, AShuffleAgainstAMeeting) {
  ExpectTold(Of(SyncAgainstShuffle), "different meetings", "thread (8, 0, 0)");
}

struct Words {
  uint32_t words[kThreads];
};
struct MoreWords {
  uint32_t words[2 * kThreads];
};
struct Megabyte {
  uint32_t words[1 << 18];
};

TRINE_KERNEL(kThreads) TwoStructs(Args) {
  TRINE_SHARED(Words, a);
  TRINE_SHARED(MoreWords, b);
  a.words[0] = b.words[0] = 1;
}
TRINE_KERNEL(kThreads) TooLargeAStruct(Args) {
  TRINE_SHARED(Megabyte, a);
  a.words[(1 << 18) - 1] = 1;
}
TEST_F(EmulatorTest, SharedMemoryThatNoDeviceHas) {
  ExpectTold(Of(TwoStructs), "more than once", "thread ");
  ExpectTold(Of(TooLargeAStruct), "more shared memory", "thread ");
}

TEST_F(EmulatorTest, LaunchesThatNoDeviceTakes) {
  EXPECT_THAT(emulator::Run(Of(HalfGroup, nullptr, 1, 0, 1056)), HasSubstr("1056 threads"));
  EXPECT_THAT(emulator::Run(Of(HalfGroup, nullptr, 1, 0, 0)), HasSubstr("0 threads"));
  EXPECT_THAT(emulator::Run(Of(HalfGroup, nullptr, 0)), HasSubstr("no blocks"));
  Launch tall = Of(HalfGroup);
  tall.grid.y = kMaxGridYZ + 1;
  EXPECT_THAT(emulator::Run(tall), HasSubstr("more blocks"));
  Launch greedy = Of(HalfGroup);
  greedy.shared_bytes = 1 << 20;
  EXPECT_THAT(emulator::Run(greedy), HasSubstr("shared memory"));
}

// Thread t reads what thread t ^ 64 writes, in another wave.
template <bool kSynced>
TRINE_KERNEL(kThreads)
Exchange(Args args) {
  TRINE_SHARED(Words, shared);
  shared.words[ThreadX()] = ThreadX();
  if (kSynced) SyncBlock();
  args.out[ThreadX()] = shared.words[ThreadX() ^ 64];
}
TEST_F(EmulatorTest, AMissingBarrierGivesAWrongResultUnderSomeOrder) {
  std::vector<uint32_t> want(kThreads);
  for (uint32_t t = 0; t < kThreads; ++t) want[t] = t ^ 64;
  int wrong = 0;
  for (const uint32_t wave : {32u, 64u}) {
    for (const Order order : kOrders) {
      emulator::Configure({wave, order, 1});
      std::vector<uint32_t> out(kThreads);
      ASSERT_EQ(emulator::Run(Of(Exchange<false>, out.data())), "");
      wrong += out != want;
      ASSERT_EQ(emulator::Run(Of(Exchange<true>, out.data())), "");
      EXPECT_EQ(out, want);
    }
  }
  EXPECT_GT(wrong, 0);
}

// Thread t reads what another lane of its wave writes: the lanes of a group are not in step.
TRINE_KERNEL(kThreads) NeighbourWithoutMeeting(Args args) {
  TRINE_SHARED(Words, shared);
  shared.words[ThreadX()] = ThreadX();
  args.out[ThreadX()] = shared.words[ThreadX() ^ 1];
}
TEST_F(EmulatorTest, LanesAreInNoStep) {
  std::vector<uint32_t> out(kThreads);
  ASSERT_EQ(emulator::Run(Of(NeighbourWithoutMeeting, out.data())), "");
  EXPECT_NE(out[0], 1u);
}

// ---- Copies that run on ----------------------------------------------------------------------

struct CopyArgs {
  const uint32_t* from;
  uint32_t* out;
};

// Each thread copies two words, in two groups. kLeft: the groups that may be under way when a
// thread reads the first word.
template <int kLeft, bool kMeets>
TRINE_KERNEL(kThreads)
CopyWords(CopyArgs args) {
  struct Words {
    uint32_t at[2][kThreads];
  };
  TRINE_SHARED(Words, words);
  for (int i = 0; i < 2; ++i) {
    BeginCopy<4>(&words.at[i][ThreadX()], args.from + kThreads * i + ThreadX());
    EndCopyGroup();
  }
  AwaitCopies<kLeft>();
  if (kMeets) SyncBlock();
  args.out[ThreadX()] = words.at[0][kThreads - 1 - ThreadX()];
  AwaitCopies<0>();
}

std::vector<uint32_t> CopiedUnder(void (*kernel)(CopyArgs), Order order) {
  std::vector<uint32_t> from(2 * kThreads), out(kThreads);
  for (uint32_t i = 0; i < from.size(); ++i) from[i] = 1000 + i;
  emulator::Configure({32, order, 3});
  EXPECT_EQ(emulator::Run(MakeLaunch(kernel, {1}, {kThreads}, CopyArgs{from.data(), out.data()})),
            "");
  return out;
}

TEST_F(EmulatorTest, CopiesAreThereOnceTheirGroupIsAwaited) {
  std::vector<uint32_t> want(kThreads);
  for (uint32_t i = 0; i < kThreads; ++i) want[i] = 1000 + kThreads - 1 - i;
  for (const Order order : kOrders) {
    EXPECT_EQ(CopiedUnder(CopyWords<1, true>, order), want);
    EXPECT_EQ(CopiedUnder(CopyWords<0, true>, order), want);
  }
}

TEST_F(EmulatorTest, ACopyThatIsReadTooEarlyGivesAWrongResultUnderSomeOrder) {
  bool early = false, unmet = false;
  for (const Order order : kOrders) {
    early |= CopiedUnder(CopyWords<2, true>, order)[0] != 1000 + kThreads - 1;
    unmet |= CopiedUnder(CopyWords<1, false>, order)[0] != 1000 + kThreads - 1;
  }
  EXPECT_TRUE(early);
  EXPECT_TRUE(unmet);
}

TRINE_KERNEL(kThreads) CopyWithoutWaiting(Args args) {
  struct Words {
    uint32_t at[kThreads];
  };
  TRINE_SHARED(Words, words);
  BeginCopy<4>(&words.at[ThreadX()], args.out + ThreadX());
  EndCopyGroup();
}
TRINE_KERNEL(kThreads) CopyFromAnOddPlace(Args args) {
  struct Words {
    alignas(8) uint32_t at[2 * kThreads];
  };
  TRINE_SHARED(Words, words);
  BeginCopy<8>(&words.at[2 * ThreadX()], args.out + 1);
  EndCopyGroup();
  AwaitCopies<0>();
}
TEST_F(EmulatorTest, ACopyThatIsNotAligned) {
  alignas(8) uint32_t from[4] = {};
  ExpectTold(Of(CopyFromAnOddPlace, from), "not aligned", "block (0, 0, 0)");
}

TEST_F(EmulatorTest, ACopyThatIsNeverAwaited) {
  std::vector<uint32_t> from(kThreads);
  ExpectTold(Of(CopyWithoutWaiting, from.data()), "copies under way", "block (0, 0, 0)");
}

TRINE_KERNEL(kThreads) ReadsWhatIsThere(Args args) {
  TRINE_SHARED(Words, shared);
  TRINE_DYNAMIC_SHARED(uint32_t, dynamic);
  args.out[2 * BlockX()] = shared.words[5];
  args.out[2 * BlockX() + 1] = dynamic[3];
  SyncBlock();
  shared.words[5] = dynamic[3] = 42;
}
TEST_F(EmulatorTest, SharedMemoryIsPoisonedBetweenBlocks) {
  std::vector<uint32_t> out(6);
  Launch launch = Of(ReadsWhatIsThere, out.data(), 3);
  launch.shared_bytes = 16;
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(emulator::Run(launch), "");
    EXPECT_EQ(out, std::vector<uint32_t>(6, 0xa5a5a5a5u));
  }
}

TRINE_KERNEL(kThreads) Places(Args args) {
  const uint32_t block = BlockX() + GridX() * (BlockY() + GridY() * BlockZ());
  const uint32_t thread = ThreadX() + BlockSizeX() * ThreadY();
  args.out[block * args.n + thread] += 1 + block * args.n + thread;
}
TEST_F(EmulatorTest, EveryThreadOfEveryBlockRunsOnce) {
  for (const Order order : kOrders) {
    emulator::Configure({64, order, 7});
    std::vector<uint32_t> out(2 * 3 * 2 * 96), want(out.size());
    for (uint32_t i = 0; i < want.size(); ++i) want[i] = i + 1;
    const Launch launch = MakeLaunch(Places, {2, 3, 2}, {32, 3}, Args{out.data(), 96});
    ASSERT_EQ(emulator::Run(launch), "");
    EXPECT_EQ(out, want);
  }
}

// ---- The runtime -----------------------------------------------------------------------------

TRINE_KERNEL(kThreads) AddOne(Args args) {
  if (ThreadX() < args.n) args.out[ThreadX()] += 1;
}

TEST_F(EmulatorTest, MemoryOfTheDeviceIsLimited) {
  DeviceSettings settings;
  size_t available = 0, total = 0;
  emulator::Reset(settings);
  ASSERT_EQ(gpuMemGetInfo(&available, &total), gpuSuccess);
  settings.memory_bytes = (total - available) + 1000;  // other tests may have left memory behind
  emulator::Reset(settings);
  void *first = nullptr, *second = nullptr;
  ASSERT_EQ(gpuMalloc(&first, 600), gpuSuccess);
  EXPECT_EQ(gpuMalloc(&second, 401), gpuErrorMemoryAllocation);
  ASSERT_EQ(gpuMalloc(&second, 400), gpuSuccess);
  ASSERT_EQ(gpuMemGetInfo(&available, &total), gpuSuccess);
  EXPECT_EQ(available, 0u);
  EXPECT_EQ(*static_cast<uint32_t*>(first), 0xa5a5a5a5u);
  EXPECT_EQ(gpuFree(first), gpuSuccess);
  EXPECT_EQ(gpuFree(first), gpuErrorInvalidValue);
  EXPECT_EQ(gpuMalloc(&first, 601), gpuErrorMemoryAllocation);
  EXPECT_EQ(gpuMalloc(&first, ~size_t{0}), gpuErrorMemoryAllocation);
  // Running out of memory is not an error that stays.
  EXPECT_EQ(gpuMalloc(&first, 600), gpuSuccess);
  EXPECT_EQ(gpuFree(first), gpuSuccess);
  EXPECT_EQ(gpuFree(second), gpuSuccess);
}

TEST_F(EmulatorTest, AnErrorOfAKernelStays) {
  Launch faulty = Of(SkippedBarrier);
  faulty.label = "skipping";
  EXPECT_EQ(gpuStart(faulty, nullptr), gpuErrorLaunchFailure);
  EXPECT_THAT(emulator::LastFailure(), AllOf(HasSubstr("skipping: "), HasSubstr("barrier")));
  uint32_t word = 1, other = 2;
  void* memory = nullptr;
  EXPECT_EQ(gpuStart(Of(AddOne, &word, 1, 1), nullptr), gpuErrorLaunchFailure);
  EXPECT_EQ(word, 1u);
  EXPECT_EQ(gpuMalloc(&memory, 4), gpuErrorLaunchFailure);
  EXPECT_EQ(gpuMemcpyAsync(&word, &other, 4, gpuMemcpyHostToDevice, nullptr),
            gpuErrorLaunchFailure);
  EXPECT_EQ(gpuStreamSynchronize(nullptr), gpuErrorLaunchFailure);
  emulator::Reset({});
  EXPECT_EQ(emulator::LastFailure(), "");
  EXPECT_EQ(gpuStart(Of(AddOne, &word, 1, 1), nullptr), gpuSuccess);
  EXPECT_EQ(word, 2u);
}

TEST_F(EmulatorTest, FaultsThatAreAskedForStay) {
  DeviceSettings settings;
  settings.failing = Call::kStart;
  settings.failing_from = 3;
  emulator::Reset(settings);
  uint32_t word = 0;
  const Launch launch = Of(AddOne, &word, 1, 1);
  EXPECT_EQ(gpuStart(launch, nullptr), gpuSuccess);
  EXPECT_EQ(gpuStart(launch, nullptr), gpuSuccess);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(gpuStart(launch, nullptr), gpuErrorLaunchFailure);
  EXPECT_EQ(gpuStreamSynchronize(nullptr), gpuErrorLaunchFailure);
  EXPECT_EQ(word, 2u);
  emulator::Reset({});
  EXPECT_EQ(gpuStart(launch, nullptr), gpuSuccess);
  EXPECT_EQ(word, 3u);
}

TEST_F(EmulatorTest, AllocationsThatFailLeaveTheDeviceWorking) {
  DeviceSettings settings;
  settings.failing = Call::kMalloc;
  settings.failing_from = 2;
  emulator::Reset(settings);
  void *memory = nullptr, *more = nullptr;
  ASSERT_EQ(gpuMalloc(&memory, 4), gpuSuccess);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(gpuMalloc(&more, 4), gpuErrorMemoryAllocation);
  EXPECT_EQ(gpuStreamSynchronize(nullptr), gpuSuccess);
  EXPECT_EQ(gpuFree(memory), gpuSuccess);
}

struct Captured {
  gpuStream stream = nullptr;
  gpuGraph graph = nullptr;

  // Captures a copy of `from` to `to`, then `launch`.
  gpuError Capture(uint32_t* to, const uint32_t* from, const Launch& launch) {
    EXPECT_EQ(gpuStreamBeginCapture(stream), gpuSuccess);
    EXPECT_EQ(gpuMemcpyAsync(to, from, 4, gpuMemcpyDeviceToDevice, stream), gpuSuccess);
    EXPECT_EQ(gpuStart(launch, stream), gpuSuccess);
    return gpuStreamEndCapture(stream, &graph);
  }
};

TEST_F(EmulatorTest, GraphsReplayAndUpdate) {
  uint32_t from = 10, to = 0, other = 100;
  Captured captured;
  ASSERT_EQ(gpuStreamCreate(&captured.stream), gpuSuccess);
  ASSERT_EQ(captured.Capture(&to, &from, Of(AddOne, &to, 1, 1)), gpuSuccess);
  EXPECT_EQ(to, 0u);  // nothing has run
  gpuGraphExec exec = nullptr;
  ASSERT_EQ(gpuGraphInstantiate(&exec, captured.graph), gpuSuccess);
  ASSERT_EQ(gpuGraphDestroy(captured.graph), gpuSuccess);
  for (const uint32_t value : {10u, 20u}) {
    from = value;
    ASSERT_EQ(gpuGraphLaunch(exec, captured.stream), gpuSuccess);
    EXPECT_EQ(to, value + 1);
  }
  ASSERT_EQ(captured.Capture(&to, &other, Of(AddOne, &to, 1, 1)), gpuSuccess);
  EXPECT_TRUE(gpuGraphExecTryUpdate(exec, captured.graph));
  ASSERT_EQ(gpuGraphDestroy(captured.graph), gpuSuccess);
  ASSERT_EQ(gpuGraphLaunch(exec, captured.stream), gpuSuccess);
  EXPECT_EQ(to, 101u);
  // A graph of another shape can't be updated.
  ASSERT_EQ(gpuStreamBeginCapture(captured.stream), gpuSuccess);
  ASSERT_EQ(gpuStreamEndCapture(captured.stream, &captured.graph), gpuSuccess);
  EXPECT_FALSE(gpuGraphExecTryUpdate(exec, captured.graph));
  ASSERT_EQ(gpuGraphDestroy(captured.graph), gpuSuccess);
  EXPECT_EQ(gpuGraphExecDestroy(exec), gpuSuccess);
  EXPECT_EQ(gpuStreamDestroy(captured.stream), gpuSuccess);
}

TEST_F(EmulatorTest, AFaultInAGraphIsFoundWhenItRuns) {
  uint32_t from = 10, to = 0;
  Captured captured;
  ASSERT_EQ(gpuStreamCreate(&captured.stream), gpuSuccess);
  ASSERT_EQ(captured.Capture(&to, &from, Of(ReturnedLane)), gpuSuccess);
  gpuGraphExec exec = nullptr;
  ASSERT_EQ(gpuGraphInstantiate(&exec, captured.graph), gpuSuccess);
  EXPECT_EQ(gpuGraphLaunch(exec, captured.stream), gpuErrorLaunchFailure);
  EXPECT_EQ(gpuGraphLaunch(exec, captured.stream), gpuErrorLaunchFailure);
  EXPECT_EQ(gpuGraphDestroy(captured.graph), gpuSuccess);
  EXPECT_EQ(gpuGraphExecDestroy(exec), gpuSuccess);
  EXPECT_EQ(gpuStreamDestroy(captured.stream), gpuSuccess);
}

TEST_F(EmulatorTest, OfAFailedDeviceThereIsNoGraph) {
  Captured captured;
  ASSERT_EQ(gpuStreamCreate(&captured.stream), gpuSuccess);
  ASSERT_EQ(gpuStreamBeginCapture(captured.stream), gpuSuccess);
  EXPECT_EQ(gpuStart(Of(SkippedBarrier), nullptr), gpuErrorLaunchFailure);
  EXPECT_EQ(gpuStreamEndCapture(captured.stream, &captured.graph), gpuErrorLaunchFailure);
  EXPECT_EQ(captured.graph, nullptr);
  EXPECT_EQ(gpuStreamDestroy(captured.stream), gpuSuccess);
}

}  // namespace
}  // namespace trine::hip
