// Injects faults into real plugins: the right call must fail with the right status, and no other.
#include "plugins/fault/injector.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <functional>
#include <future>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/fault/rig.h"
#include "plugins/timeline_handle.h"

namespace trine::fault {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr uint64_t kNs = 1'000'000'000;
constexpr uint64_t kForever = UINT64_MAX;

absl::StatusCode CodeOf(const absl::Status& status) { return status.code(); }

class InjectorTest : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr auto kOk = absl::StatusCode::kOk;
  static constexpr auto kLost = absl::StatusCode::kUnavailable;
  static constexpr auto kFull = absl::StatusCode::kResourceExhausted;
};

INSTANTIATE_TEST_SUITE_P(Plugins, InjectorTest,
                         ::testing::Values(TRINE_CPU_PLUGIN, TRINE_EXAMPLE_PLUGIN),
                         [](const auto& info) {
                           return std::string(info.param).find("cpu") != std::string::npos
                                      ? "Cpu"
                                      : "Example";
                         });

// Makes calls of one moment, on a device that is open and has a plan.
struct Caller {
  const char* moment;
  std::function<absl::Status(Rig&, const std::shared_ptr<Device>&, DoublingPlan&)> call;
};

std::vector<Caller> Callers() {
  alignas(64) static float memory[16];
  return {
      {"open", [](Rig& rig, const auto&, DoublingPlan&) { return rig.Open().status(); }},
      {"alloc",
       [](Rig&, const auto& device, DoublingPlan&) {
         return Buffer::Allocate(device, 64, TRINE_MEMORY_STATE).status();
       }},
      {"import",
       [](Rig&, const auto& device, DoublingPlan&) {
         const trine_import_desc desc{sizeof(desc), TRINE_MEMORY_WEIGHTS, 0, 0, memory, 64};
         return Buffer::Import(device, desc).status();
       }},
      {"write",
       [](Rig&, const auto&, DoublingPlan& plan) {
         const float one = 1;
         return plan.buffers[0].Write(0, &one, 4);
       }},
      {"read",
       [](Rig&, const auto&, DoublingPlan& plan) {
         float one = 1;
         return plan.buffers[0].Read(0, &one, 4);
       }},
      {"copy",
       [](Rig&, const auto& device, DoublingPlan& plan) {
         const trine_copy copy{
             {plan.buffers[0].handle(), nullptr, 0}, {plan.buffers[1].handle(), nullptr, 0}, 64};
         trine_copy_args args{};
         args.struct_size = sizeof(args);
         args.n_copies = 1;
         args.copy_stride = sizeof(copy);
         args.copies = &copy;
         return device->Copy(args);
       }},
      {"query", [](Rig&, const auto& device,
                   DoublingPlan& plan) { return device->QueryPlan(plan.doubling.graph).status(); }},
      {"plan",
       [](Rig&, const auto& device, DoublingPlan& plan) {
         return PlanOn(device, plan.doubling, plan.buffers).status();
       }},
      {"run",
       [](Rig&, const auto&, DoublingPlan& plan) {
         return RunPlan(plan, {3, 1});
       }},
      {"token",
       [](Rig&, const auto&, DoublingPlan& plan) {
         return RunPlan(plan, {2, 2});
       }},
  };
}

// Returns how many calls of the moment Rig and MustPlan make before a test's own.
int CallsBefore(const std::string& moment) {
  if (moment == "alloc" || moment == "write") return 3;
  return moment == "open" || moment == "plan" ? 1 : 0;
}

// Calls `caller` four times with `fault` at the second.
std::vector<absl::StatusCode> FourCalls(const char* plugin, const Caller& caller,
                                        const std::string& fault, std::string* log = nullptr) {
  Rig rig(plugin, "cpu:" + fault + "@" + caller.moment + "=" +
                      std::to_string(CallsBefore(caller.moment) + 2));
  const auto device = rig.MustOpen();
  const auto plan = MustPlan(device);
  std::vector<absl::StatusCode> codes;
  for (int i = 0; i < 4; ++i) codes.push_back(CodeOf(caller.call(rig, device, *plan)));
  if (log != nullptr) *log = rig.log();
  return codes;
}

TEST_P(InjectorTest, AnUnstruckPlanRunsAsEver) {
  Rig rig(GetParam(), "*:garbage@run=1000;*:lost@token=1000");
  auto device = rig.MustOpen();
  auto plan = MustPlan(device);
  auto timeline = TimelineHandle::Create(device, 4);
  ASSERT_TRUE(timeline.ok());
  const trine_point wait{timeline->handle(), 4}, signal{timeline->handle(), 5};
  ASSERT_TRUE(RunPlan(*plan, {4, 1, 1, &wait, &signal}).ok());
  ASSERT_TRUE(timeline->Wait(5, kNs).ok());
  EXPECT_EQ(*timeline->Value(), 5u);
  EXPECT_THAT(Values(*plan, 2), Each(3.0f));
  EXPECT_THAT(Values(*plan, 1), Each(1.5f));
  EXPECT_NE(plan->buffers[0].host_ptr(), nullptr);
  EXPECT_NE(device->table().buffer_import, nullptr);
  EXPECT_EQ(rig.log(), "");
  device.reset();  // the plan and the timeline still keep it alive
}

TEST_P(InjectorTest, OutOfMemoryAtEveryMoment) {
  for (const Caller& caller : Callers()) {
    SCOPED_TRACE(caller.moment);
    EXPECT_THAT(FourCalls(GetParam(), caller, "oom"), ::testing::ElementsAre(kOk, kFull, kOk, kOk));
  }
}

TEST_P(InjectorTest, AStatusThatIsNoneAtEveryMoment) {
  for (const Caller& caller : Callers()) {
    SCOPED_TRACE(caller.moment);
    EXPECT_THAT(FourCalls(GetParam(), caller, "garbage=status"),
                ::testing::ElementsAre(kOk, absl::StatusCode::kUnknown, kOk, kOk));
  }
}

// Calls that make something know of a loss, too: memory that the device writes stays untouched.
TEST_P(InjectorTest, ADeviceLostAtAnAllocationIsRememberedAsLost) {
  Rig rig(GetParam(), "*:lost@alloc=2");
  const auto device = rig.MustOpen();
  ASSERT_TRUE(Buffer::Allocate(device, 64, TRINE_MEMORY_IO).ok());
  EXPECT_FALSE(device->was_lost());
  EXPECT_TRUE(absl::IsUnavailable(Buffer::Allocate(device, 64, TRINE_MEMORY_IO).status()));
  EXPECT_TRUE(device->was_lost());
}

TEST_P(InjectorTest, LostAtEveryMomentForGood) {
  for (const Caller& caller : Callers()) {
    SCOPED_TRACE(caller.moment);
    std::string log;
    EXPECT_THAT(FourCalls(GetParam(), caller, "lost", &log),
                ::testing::ElementsAre(kOk, kLost, kLost, kLost));
    EXPECT_THAT(log, HasSubstr("injected fault on cpu: cpu:lost@"));
  }
}

TEST_P(InjectorTest, TimeoutAtEveryMomentEndsInALoss) {
  for (const Caller& caller : Callers()) {
    SCOPED_TRACE(caller.moment);
    const auto begin = steady_clock::now();
    EXPECT_THAT(FourCalls(GetParam(), caller, "timeout=20"),
                ::testing::ElementsAre(kOk, kLost, kLost, kLost));
    EXPECT_GE(steady_clock::now() - begin, milliseconds(20));
  }
}

TEST_P(InjectorTest, SlowAtEveryMomentIsOnlySlow) {
  for (const Caller& caller : Callers()) {
    SCOPED_TRACE(caller.moment);
    const auto begin = steady_clock::now();
    EXPECT_THAT(FourCalls(GetParam(), caller, "slow=20"),
                ::testing::ElementsAre(kOk, kOk, kOk, kOk));
    EXPECT_GE(steady_clock::now() - begin, milliseconds(20));
  }
}

TEST_P(InjectorTest, ALostDeviceSaysSoAtEveryCall) {
  Rig rig(GetParam(), "cpu:lost@run=1");
  const auto device = rig.MustOpen();
  const auto plan = MustPlan(device);
  EXPECT_THAT(std::string(RunPlan(*plan).message()), HasSubstr("cpu:lost@run=1"));
  for (const Caller& caller : Callers()) {
    EXPECT_EQ(caller.call(rig, device, *plan).code(), kLost) << caller.moment;
  }
  EXPECT_EQ(device->QueryOp(plan->doubling.graph, 0).status().code(), kLost);
  EXPECT_EQ(TimelineHandle::Create(device, 0).status().code(), kLost);
}

TEST_P(InjectorTest, ALossTravelsAlongTimelines) {
  Rig rig(GetParam(), "cpu:lost@run=2");
  const auto device = rig.MustOpen();
  const auto plan = MustPlan(device);
  auto timeline = TimelineHandle::Create(device, 0), other = TimelineHandle::Create(device, 0);
  ASSERT_TRUE(timeline.ok() && other.ok());
  const trine_point first{timeline->handle(), 1}, second{timeline->handle(), 2};
  ASSERT_TRUE(RunPlan(*plan, {1, 1, 0, nullptr, &first}).ok());
  auto waiter = std::async(std::launch::async, [&] { return other->Wait(1, kForever); });
  EXPECT_TRUE(
      RunPlan(*plan, {1, 1, 0, nullptr, &second}).ok());  // accepted: the signals tell how it ends
  EXPECT_EQ(waiter.get().code(), kLost);
  EXPECT_TRUE(timeline->Wait(1, 0).ok());  // reached before the loss
  const absl::Status failed = timeline->Wait(2, kForever);
  EXPECT_EQ(failed.code(), kLost);
  EXPECT_THAT(std::string(failed.message()), HasSubstr("cpu:lost@run=2"));
  EXPECT_EQ(timeline->Signal(7).code(), kLost);
}

TEST_P(InjectorTest, EveryContextOfADeviceIsLost) {
  Rig rig(GetParam(), "cpu:lost@run=1");
  const auto device = rig.MustOpen(), other = rig.MustOpen();
  const auto plan = MustPlan(device);
  EXPECT_EQ(RunPlan(*plan).code(), kLost);
  EXPECT_EQ(Buffer::Allocate(other, 64, TRINE_MEMORY_IO).status().code(), kLost);
}

TEST_P(InjectorTest, ADeviceComesBackWhenItIsOpenedAgain) {
  Rig rig(GetParam(), "cpu:lost@run=2,back@open=2;cpu:lost@run=4,back=0");
  for (int round = 0; round < 2; ++round) {
    auto device = rig.MustOpen();
    {
      const auto plan = MustPlan(device);
      EXPECT_TRUE(RunPlan(*plan).ok());
      EXPECT_EQ(RunPlan(*plan).code(), kLost);
    }
    if (round == 0) {
      EXPECT_EQ(rig.Open().status().code(), kLost);
    }
    auto again = rig.MustOpen();  // a second context; the lost one stays lost
    EXPECT_TRUE(Buffer::Allocate(again, 64, TRINE_MEMORY_IO).ok());
    EXPECT_EQ(Buffer::Allocate(device, 64, TRINE_MEMORY_IO).status().code(), kLost);
  }
  const auto device = rig.MustOpen();
  const auto plan = MustPlan(device);
  EXPECT_TRUE(RunPlan(*plan).ok());
  std::vector<float> y = Values(*plan, 1);
  y.resize(16);
  EXPECT_THAT(y, Each(3.0f));
}

TEST_P(InjectorTest, LoadAndShutdown) {
  Rig rig(GetParam(), "cpu:oom@load;cpu:slow=30@shutdown");
  auto device = rig.MustOpen();
  EXPECT_EQ(Buffer::Allocate(device, 64, TRINE_MEMORY_IO).status().code(), kFull);
  EXPECT_TRUE(Buffer::Allocate(device, 64, TRINE_MEMORY_IO).ok());
  const auto begin = steady_clock::now();
  device.reset();
  EXPECT_GE(steady_clock::now() - begin, milliseconds(30));
  Rig lost(GetParam(), "cpu:lost@shutdown,back@open=2");
  lost.MustOpen().reset();
  EXPECT_EQ(lost.Open().status().code(), kLost);
  EXPECT_TRUE(lost.Open().ok());
}

// ---- Hangs --------------------------------------------------------------------------------------

TEST_P(InjectorTest, ARunWithoutSignalsHangsUntilItIsLetGo) {
  Rig rig(GetParam(), "cpu:hang@run=2");
  const auto device = rig.MustOpen();
  const auto plan = MustPlan(device);
  EXPECT_TRUE(RunPlan(*plan).ok());
  auto run = std::async(std::launch::async, [&] { return RunPlan(*plan); });
  EXPECT_EQ(run.wait_for(milliseconds(100)), std::future_status::timeout);
  // Calls that are always allowed still work while the run hangs.
  EXPECT_THAT(Values(*plan, 0), Each(1.5f));
  rig.injector().Release();
  EXPECT_EQ(run.get().code(), kLost);
  EXPECT_EQ(RunPlan(*plan).code(), kLost);
}

TEST_P(InjectorTest, SignalsOfAHungRunNeverCome) {
  Rig rig(GetParam(), "cpu:hang@run=1");
  const auto device = rig.MustOpen();
  const auto plan = MustPlan(device);
  auto timeline = TimelineHandle::Create(device, 0);
  const trine_point first{timeline->handle(), 1}, second{timeline->handle(), 2};
  ASSERT_TRUE(RunPlan(*plan, {1, 1, 0, nullptr, &first}).ok());
  ASSERT_TRUE(RunPlan(*plan, {1, 1, 0, nullptr, &second}).ok());  // waits for the hung run
  EXPECT_EQ(timeline->Wait(1, 20'000'000).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(timeline->Wait(2, 0).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(Buffer::Allocate(device, 64, TRINE_MEMORY_IO).ok());
  EXPECT_THAT(Values(*plan, 1), Each(1.5f));  // nothing ran
  auto waiter = std::async(std::launch::async, [&] { return timeline->Wait(1, kForever); });
  EXPECT_EQ(waiter.wait_for(milliseconds(20)), std::future_status::timeout);
  rig.injector().Release();
  EXPECT_EQ(waiter.get().code(), kLost);
}

TEST_P(InjectorTest, TheDriversOwnLimitEndsWhatHangs) {
  Rig rig(GetParam(), "cpu:timeout=100@run=1,back=0");
  const auto device = rig.MustOpen();
  const auto plan = MustPlan(device);
  auto timeline = TimelineHandle::Create(device, 0);
  const trine_point signal{timeline->handle(), 1};
  ASSERT_TRUE(RunPlan(*plan, {1, 1, 0, nullptr, &signal}).ok());
  EXPECT_EQ(timeline->Wait(1, 0).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(RunPlan(*plan).code(), kLost);  // waits for the hung run, and is lost with it
  EXPECT_EQ(timeline->Wait(1, kForever).code(), kLost);
  EXPECT_TRUE(rig.Open().ok());
}

TEST_P(InjectorTest, AHangInsideTheTeamTakesTheTeamAlong) {
  for (const uint32_t workers : {1u, 3u}) {
    Rig rig(GetParam(), "cpu:hang@run=1,in=team", workers);
    const auto device = rig.MustOpen();
    const auto plan = MustPlan(device);
    auto run = std::async(std::launch::async, [&] { return RunPlan(*plan); });
    while (rig.log().empty()) std::this_thread::yield();
    EXPECT_EQ(run.wait_for(milliseconds(100)), std::future_status::timeout);
    const auto use_team = [&] {
      const trine_host* host = rig.host().table();
      return host->parallel_run(
          host->self, [](void*, uint32_t, uint32_t) {}, nullptr);
    };
    auto turn = std::async(std::launch::async, use_team);
    EXPECT_EQ(turn.wait_for(milliseconds(50)), std::future_status::timeout);
    rig.host().ReplaceTeam();  // as a watchdog does
    EXPECT_EQ(turn.get(), TRINE_OK);
    rig.injector().Release();
    EXPECT_EQ(run.get().code(), kLost);
    EXPECT_EQ(use_team(), TRINE_OK);
  }
}

TEST_P(InjectorTest, AHangAtShutdownIsLetGo) {
  Rig rig(GetParam(), "cpu:hang@shutdown");
  auto device = rig.MustOpen();
  auto close = std::async(std::launch::async, [&] { device.reset(); });
  EXPECT_EQ(close.wait_for(milliseconds(50)), std::future_status::timeout);
  rig.injector().Release();
  close.get();
}

// ---- Garbage ------------------------------------------------------------------------------------

TEST_P(InjectorTest, GarbageFillsTheOutputsOfOneRun) {
  const struct {
    const char* junk;
    std::function<bool(float)> is;
  } kinds[] = {
      {"garbage", [](float v) { return std::isnan(v); }},
      {"garbage=inf", [](float v) { return std::isinf(v); }},
      {"garbage=huge", [](float v) { return std::isfinite(v) && v > 0x1p50f; }},
      {"garbage=tiny", [](float v) { return v != 0 && std::fabs(v) < 0x1p-50f; }},
      {"garbage=bits", [](float v) { return v != 3.0f && v != 1.5f; }},
  };
  for (const auto& kind : kinds) {
    SCOPED_TRACE(kind.junk);
    Rig rig(GetParam(), std::string("cpu:") + kind.junk + "@run=2");
    const auto device = rig.MustOpen();
    const auto plan = MustPlan(device);
    ASSERT_TRUE(RunPlan(*plan, {4, 1, 1}).ok());
    EXPECT_THAT(Values(*plan, 2), Each(3.0f));
    ASSERT_TRUE(RunPlan(*plan, {3, 1, 1}).ok());
    const std::vector<float> y = Values(*plan, 2);
    for (int i = 0; i < 48; ++i) EXPECT_TRUE(kind.is(y[static_cast<size_t>(i)])) << y[i];
    for (size_t i = 48; i < 64; ++i) EXPECT_EQ(y[i], 3.0f);  // a row of the first run
    EXPECT_THAT(Values(*plan, 0), Each(1.5f));
    EXPECT_THAT(Values(*plan, 1), Each(1.5f));  // the other alternate
    ASSERT_TRUE(RunPlan(*plan, {4, 1, 1}).ok());
    EXPECT_THAT(Values(*plan, 2), Each(3.0f));
  }
}

TEST_P(InjectorTest, GarbageIsThereWhenTheSignalComes) {
  Rig rig(GetParam(), "cpu:garbage@run");
  const auto device = rig.MustOpen();
  const auto plan = MustPlan(device);
  auto inputs = TimelineHandle::Create(device, 0), done = TimelineHandle::Create(device, 0);
  const trine_point wait{inputs->handle(), 1}, signal{done->handle(), 1};
  auto run = std::async(std::launch::async, [&] {
    return RunPlan(*plan, {4, 1, 0, &wait, &signal});
  });
  EXPECT_EQ(done->Wait(1, 20'000'000).code(), absl::StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(inputs->Signal(1).ok());
  ASSERT_TRUE(done->Wait(1, kForever).ok());
  EXPECT_TRUE(std::isnan(Values(*plan, 1)[0]));
  EXPECT_TRUE(run.get().ok());
  // A failed wait fails the signals with its own status.
  const trine_point wait_2{inputs->handle(), 2}, signal_2{done->handle(), 2};
  ASSERT_TRUE(inputs->SetFailed(absl::DataLossError("spilt")).ok());
  EXPECT_TRUE(RunPlan(*plan, {1, 1, 0, &wait_2, &signal_2}).ok());
  EXPECT_EQ(done->Wait(2, kForever).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(RunPlan(*plan, {1, 1, 0, &wait_2}).code(), absl::StatusCode::kAborted);
}

TEST_P(InjectorTest, AbsurdSizes) {
  Rig rig(GetParam(), "cpu:garbage=size@query=2");
  const auto device = rig.MustOpen();
  const Doubling doubling;
  EXPECT_EQ(device->QueryPlan(doubling.graph)->scratch_bytes, 0u);
  const auto absurd = device->QueryPlan(doubling.graph);
  EXPECT_TRUE(absl::IsInternal(absurd.status())) << absurd.status();
  EXPECT_THAT(std::string(absurd.status().message()), HasSubstr("which can't be"));
  EXPECT_EQ(device->QueryPlan(doubling.graph)->scratch_bytes, 0u);
}

TEST(InjectorLayoutTest, AbsurdLayouts) {
  Rig rig(TRINE_CPU_PLUGIN, "cpu:garbage=size@layout=2");
  const auto device = rig.MustOpen();
  if (device->table().layout_list == nullptr) GTEST_SKIP() << "the backend has no layouts";
  Doubling doubling;  // any graph will do
  const auto before = device->ListLayouts(doubling.graph, 0);
  EXPECT_EQ(device->ListLayouts(doubling.graph, 0).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device->ListLayouts(doubling.graph, 0).status().code(), before.status().code());
}

// ---- Submissions --------------------------------------------------------------------------------

TEST_P(InjectorTest, SlownessIsTheWorksOwn) {
  Rig rig(GetParam(), "cpu:slow=60@run");
  const auto device = rig.MustOpen();
  const auto plan = MustPlan(device);
  auto timeline = TimelineHandle::Create(device, 0);
  const trine_point wait{timeline->handle(), 1};
  auto run = std::async(std::launch::async, [&] { return RunPlan(*plan, {4, 1, 0, &wait}); });
  std::this_thread::sleep_for(milliseconds(30));
  const auto begin = steady_clock::now();
  ASSERT_TRUE(timeline->Signal(1).ok());  // the extra time begins here, not at the submission
  EXPECT_TRUE(run.get().ok());
  EXPECT_GE(steady_clock::now() - begin, milliseconds(60));
  EXPECT_THAT(Values(*plan, 1), Each(3.0f));
}

TEST_P(InjectorTest, MistakesAreStillThePluginsToRefuse) {
  Rig rig(GetParam(), "cpu:slow=1@run;cpu:lost@run=100");
  const auto device = rig.MustOpen();
  const auto plan = MustPlan(device);
  EXPECT_EQ(RunPlan(*plan, {Doubling::kMaxTokens + 1, 1}).code(),
            absl::StatusCode::kInvalidArgument);
  trine_run_args args{};
  args.struct_size = sizeof(args);
  const int64_t params[] = {1, 1};
  args.n_params = 2;
  args.params = params;
  args.sync.n_signals = 1;
  args.sync.point_stride = sizeof(trine_point);
  EXPECT_EQ(plan->plan.Run(args).code(), absl::StatusCode::kInvalidArgument);
  const trine_point nobody{nullptr, 1};
  args.sync.signals = &nobody;
  EXPECT_EQ(plan->plan.Run(args).code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(InjectorTest, SeedsReproduceWholeSchedules) {
  const auto schedule = [&](const char* seed) {
    Rig rig(GetParam(), std::string("cpu:garbage=status@random,rate=0.2,seed=") + seed);
    const auto device = rig.MustOpen();
    const auto plan = MustPlan(device);
    std::string outcome;
    for (int i = 0; i < 100; ++i) outcome += RunPlan(*plan).ok() ? '.' : 'x';
    return outcome;
  };
  EXPECT_EQ(schedule("7"), schedule("7"));
  EXPECT_NE(schedule("7"), schedule("8"));
  EXPECT_THAT(schedule("7"), HasSubstr("x"));
}

// Makes all calls that may run together, while the device is lost.
TEST_P(InjectorTest, ConcurrentCallsAreSafe) {
  Rig rig(GetParam(), "cpu:lost@run=40;cpu:garbage=bits@run=10-30;cpu:slow=1@read=5");
  const auto device = rig.MustOpen();
  const auto plan = MustPlan(device);
  auto timeline = TimelineHandle::Create(device, 0);
  auto spare = Buffer::Allocate(device, 4096, TRINE_MEMORY_IO);
  ASSERT_TRUE(timeline.ok() && spare.ok());
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::vector<float> values(16);
      while (spare->Write(t * 64, values.data(), 64).ok()) {
        (void)spare->Read(t * 64, values.data(), 64);
        (void)timeline->Value();
        std::this_thread::yield();
      }
    });
  }
  threads.emplace_back([&] { EXPECT_EQ(timeline->Wait(1000, kForever).code(), kLost); });
  for (uint64_t i = 1; i <= 39; ++i) {
    const trine_point signal{timeline->handle(), i};
    EXPECT_TRUE(RunPlan(*plan, {2, 2, 0, nullptr, &signal}).ok());
  }
  EXPECT_TRUE(timeline->Wait(39, 0).ok());
  EXPECT_EQ(RunPlan(*plan).code(), kLost);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace trine::fault
