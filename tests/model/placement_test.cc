// Tests models placed by the planner: where costs and memory put them, what is reported, and the
// same bits everywhere.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "dispatch/cost/device_costs.h"
#include "gmock/gmock.h"
#include "runtime/base/machine_report.h"
#include "runtime/engine/generate.h"
#include "runtime/engine/model_setup.h"
#include "runtime/make_model/presets.h"
#include "runtime/make_model/test_bytes.h"
#include "runtime/placement/calibration.h"
#include "runtime/placement/placer.h"
#include "tests/model/placement_testing.h"

namespace trine {
namespace {

TEST_F(PlacementTest, GoesWhereItIsFastest) {
  Calibrate({1, 1, 0.01, 1, 1});
  const auto engine = MustLoad(Options());
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(Where(*engine), "several1(6L)");
  Calibrate({0.01, 1, 1, 1, 1});
  const auto again = MustLoad(Options());
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(Where(*again), "CPU(6L)");
}

TEST_F(PlacementTest, KeepsToTheDevicesThatAreNamed) {
  Calibrate({1, 1, 0.01, 1, 1});
  EngineOptions options = Options();
  options.placement.devices = {"cpu", "several2"};
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(Where(*engine), "CPU(6L)");
  options.placement.devices = {"several3"};
  const auto one = MustLoad(options);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(Where(*one), "several3(6L)");
  options.placement.devices = {"several3", "dgpu"};
  EXPECT_EQ(Engine::Load(options).status().code(), absl::StatusCode::kNotFound);
  options.placement.allow_degraded = true;
  const auto degraded = MustLoad(options);
  ASSERT_NE(degraded, nullptr);
  EXPECT_EQ(Where(*degraded), "several3(6L)");
  EXPECT_NE(said_.find("going on without it"), std::string::npos) << said_;
}

TEST_F(PlacementTest, ADegradedSplitGivesTheCpuWhatNobodyElseIsThereFor) {
  EngineOptions options = Options();
  options.placement.split = SplitOf("several0:2,dgpu:4");
  EXPECT_EQ(Engine::Load(options).status().code(), absl::StatusCode::kNotFound);
  options.placement.allow_degraded = true;
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(Where(*engine), "several0(2L) + CPU(4L)");
  EXPECT_NE(said_.find("its layers go to the CPU"), std::string::npos) << said_;
}

TEST_F(PlacementTest, HoldsNoMoreThanItMay) {
  Calibrate({1, 1, 0.01, 1, 1});
  EngineOptions options = Options();
  options.placement.devices = {"cpu", "several1"};
  auto setup = PrepareModel(options);
  ASSERT_TRUE(setup.ok()) << setup.status();
  const auto whole = setup->placer->Explain();
  ASSERT_TRUE(whole.ok()) << whole.status();
  // Leave room for about half of what the whole model takes there, without scratch.
  const Placement& placement = whole->placement;
  ASSERT_EQ(placement.segments.size(), 1u);
  const size_t device = placement.segments[0].range.device;
  const uint64_t scratch = whole->problem.plan.devices[device].fixed_bytes;
  const uint64_t half = scratch + (placement.devices[device].used_bytes - scratch) / 2;
  options.placement.memory_limits = LimitsOf(absl::StrCat("several1:", half / 1024, "K"));
  auto limited = PrepareModel(options);
  ASSERT_TRUE(limited.ok()) << limited.status();
  const auto report = limited->placer->Explain();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_LE(report->placement.devices[device].used_bytes, half);
  EXPECT_EQ(report->placement.segments.size(), 2u);
  EXPECT_TRUE(
      std::any_of(report->placement.segments.begin(), report->placement.segments.end(),
                  [](const PlacementSegment& s) { return absl::StrContains(s.bound, "memory"); }));
  const auto engine = MustLoad(options);
  const auto alone = MustLoad(TestOptions(file_.path()));
  ASSERT_TRUE(engine != nullptr && alone != nullptr);
  EXPECT_EQ(engine->model()->places().size(), 2u) << Where(*engine);
  EXPECT_EQ(HashOf(engine.get(), kPrompt), HashOf(alone.get(), kPrompt));
}

// A matrix that both ends share is counted once, in its packed layout.
TEST_F(PlacementTest, PlansTheBytesThatLoadingTakes) {
  EngineOptions options = Options();
  options.model_path = ShippedModel();
  options.placement.devices = {"several0"};
  auto setup = PrepareModel(options);
  ASSERT_TRUE(setup.ok()) << setup.status();
  const auto report = setup->placer->Explain();
  ASSERT_TRUE(report.ok()) << report.status();
  uint64_t planned = 0;
  for (size_t i = 0; i < report->problem.plan.devices.size(); ++i) {
    const MemoryUse& use = report->placement.devices[i];
    if (use.used_bytes == 0) continue;
    planned = use.used_bytes - report->problem.plan.devices[i].fixed_bytes -
              report->placement.segments[0].kv_bytes;
  }
  const auto engine = MustLoad(options);
  ASSERT_NE(engine, nullptr);
  const std::vector<DeviceWeights> weights = engine->model()->weights();
  ASSERT_EQ(weights.size(), 1u);
  const WeightBytes& plain = weights[0].plain;
  const uint64_t taken =
      weights[0].packed_bytes + plain.file + plain.arena + plain.copied + plain.converted;
  EXPECT_NEAR(static_cast<double>(planned), static_cast<double>(taken),
              static_cast<double>(taken) / 100);
}

TEST_F(PlacementTest, BadLimitsAreRefused) {
  for (const char* text :
       {"several1", "several1:3", "3,1", "several1:50%", "several1:2Q", "dgpu7:2G"}) {
    EngineOptions options = Options();
    const auto limits = ParseDeviceMemory(text);
    if (limits.ok()) options.placement.memory_limits = *limits;
    EXPECT_FALSE(limits.ok() && Engine::Load(options).ok()) << text;
  }
}

// For any costs, memory and options, the bits are those of the CPU alone.
TEST_F(PlacementTest, AnyPlacementGivesTheSameBits) {
  std::mt19937 random(11);
  const auto alone = MustLoad(TestOptions(file_.path()));
  ASSERT_NE(alone, nullptr);
  const std::string expected = HashOf(alone.get(), kPrompt);
  int several = 0, ends_alone = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<double> factors;
    for (size_t i = 0; i < kDevices.size(); ++i) {
      factors.push_back(i == 0 ? 100 : std::exp2(static_cast<double>(random() % 7)));
    }
    Calibrate(factors);
    EngineOptions options = Options();
    options.batch_tokens = 16;  // scratch is small then
    options.placement.strategy = static_cast<Strategy>(random() % 3);
    options.placement.optimize = static_cast<Optimize>(random() % 2);
    for (size_t i = 1; i < kDevices.size(); ++i) {
      options.placement.memory_limits.push_back(
          {kDevices[i], SplitShare::Unit::kBytes,
           1024 * static_cast<double>(300 + random() % 1500)});
    }
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr);
    ASSERT_EQ(HashOf(engine.get(), kPrompt), expected) << Where(*engine);
    several += engine->model()->places().size() > 1;
    for (const SegmentPlace& p : engine->model()->places())
      ends_alone += p.span.begin == p.span.end;
  }
  EXPECT_GT(several, 10) << "the test should see splits";
  EXPECT_GT(ends_alone, 0) << "and ends of the model by themselves";
}

TEST_F(PlacementTest, ALostDeviceIsPlannedAround) {
  Calibrate({8, 1, 0.01, 0.1, 1});
  EngineOptions options = Options();
  options.faults = "several1:lost@run=2";
  const auto engine = MustLoad(options);
  const auto alone = MustLoad(TestOptions(file_.path()));
  ASSERT_TRUE(engine != nullptr && alone != nullptr);
  ASSERT_EQ(Where(*engine), "several1(6L)");
  const std::string expected = HashOf(alone.get(), kPrompt);
  EXPECT_EQ(HashOf(engine.get(), kPrompt), expected);
  EXPECT_EQ(HashOf(engine.get(), kPrompt), expected);
  EXPECT_EQ(Where(*engine), "several2(6L)") << "the next best, not the CPU";
  EXPECT_NE(said_.find("the model goes to several2(6L)"), std::string::npos) << said_;
}

TEST_F(PlacementTest, ADeviceThatMakesNoSenseIsLeftOut) {
  for (const char* fault : {"several0:garbage=size@query", "several0:lost@open"}) {
    said_.clear();
    EngineOptions options = Options();
    options.placement.devices = {"cpu", "several0"};
    options.faults = fault;
    const auto engine = MustLoad(options);
    ASSERT_NE(engine, nullptr) << fault;
    EXPECT_EQ(Where(*engine), "CPU(6L)") << fault;
    EXPECT_NE(said_.find("several0 is not used: "), std::string::npos) << said_;
  }
}

// The cost of a type that was not measured is guessed: the device is still used.
TEST_F(PlacementTest, WhatWasNotMeasuredIsGuessed) {
  MachineOptions machine;
  machine.registry = Options().plugins;
  const Inventory inventory = DescribeMachine(machine);
  Calibration calibration;
  for (const InventoryDevice& device : inventory.devices) {
    DeviceCosts costs;
    costs.matmul[TRINE_DTYPE_Q4_0] = CostCurve({{1, device.tier_name == "several2" ? 1e-4 : 1}});
    calibration.Set(CalibrationKey(inventory, device, 1), costs);
  }
  ASSERT_TRUE(calibration.Write(calibration_).ok());
  const auto engine = MustLoad(Options());
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(Where(*engine), "several2(6L)") << "as fast as it was with what was measured";
}

TEST_F(PlacementTest, LimitsThatNothingWouldKeepAreRefused) {
  EngineOptions options = Options();
  options.placement.memory_limits = LimitsOf("several0:1G");
  options.placement.split = SplitOf("several0:6");
  EXPECT_EQ(Engine::Load(options).status().code(), absl::StatusCode::kInvalidArgument);
  options.placement.split.clear();
  options.placement.mode = SplitMode::kNone;
  EXPECT_EQ(Engine::Load(options).status().code(), absl::StatusCode::kInvalidArgument);
  // A single device has its limit, too.
  options.placement.mode = SplitMode::kLayer;
  options.placement.devices = {"several0"};
  options.placement.memory_limits = LimitsOf("several0:64K");
  EXPECT_EQ(Engine::Load(options).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(PlacementTest, ExplainsWhatWasAskedForToo) {
  EngineOptions options = Options();
  options.placement.split = SplitOf("several0:4,cpu:2");
  auto setup = PrepareModel(options);
  ASSERT_TRUE(setup.ok()) << setup.status();
  const auto report = setup->placer->Explain();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->searched);
  ASSERT_EQ(report->placement.segments.size(), 2u);
  EXPECT_GT(report->placement.decode_ns, 0);
  EXPECT_GT(report->placement.segments[1].decode_transfer_ns, 0);
}

TEST_F(PlacementTest, CalibrationFilesAreReadOrRefused) {
  EXPECT_EQ(Calibration::Read(calibration_)->size(), 0u) << "there is none yet";
  Calibrate({1, 1, 1, 1, 1});
  const auto written = Calibration::Read(calibration_);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->size(), kDevices.size());
  for (const char* text : {"", "{", "[]", "{\"trine_calibration\":1}", "null",
                           "{\"trine_calibration\":1,\"devices\":[]}"}) {
    std::ofstream(calibration_) << text;
    EXPECT_EQ(Calibration::Read(calibration_).status().code(), absl::StatusCode::kDataLoss) << text;
    // Only the measured costs are lost.
    EXPECT_NE(MustLoad(Options()), nullptr);
  }
  std::ofstream(calibration_) << R"({"trine_calibration":1,"devices":{"a":{"run_ns":-1},"b":7}})";
  EXPECT_EQ(Calibration::Read(calibration_)->size(), 0u) << "entries that make no sense";
  std::ofstream(calibration_) << R"({"trine_calibration":99,"devices":{}})";
  EXPECT_EQ(Calibration::Read(calibration_)->size(), 0u) << "another version's";
  EXPECT_EQ(Calibration::Read("/").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(Calibration().Write("/proc/trine/calibration.json").ok());
}

// Two processes that measure at once begin with the same file, and each adds its results.
TEST_F(PlacementTest, CalibrationsAddUp) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      Calibration mine;
      mine.Set("device " + std::to_string(i), DeviceCosts());
      EXPECT_TRUE(mine.AddTo(calibration_).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Calibration::Read(calibration_)->size(), 8u);
  EXPECT_TRUE(Calibration::CheckWritable(calibration_).ok());
  EXPECT_EQ(Calibration::Read(calibration_)->size(), 8u) << "it was only asked";
  std::ofstream(calibration_) << "not json";
  Calibration mine;
  mine.Set("device", DeviceCosts());
  EXPECT_TRUE(mine.AddTo(calibration_).ok());
  EXPECT_EQ(Calibration::Read(calibration_)->size(), 1u);
  EXPECT_FALSE(mine.AddTo("/proc/trine/calibration.json").ok());
  EXPECT_FALSE(Calibration::CheckWritable("/proc/trine/calibration.json").ok());
}

// A file in memory is counted once, and weights that are read in the file are counted, too.
TEST_F(PlacementTest, WeightsOfTheCpuAreCountedOnceHoweverTheyAreRead) {
  const auto plan = [&](bool pack, bool use_mmap) {
    EngineOptions options = Options();
    options.model_path = ShippedModel();
    options.placement.devices = {"cpu"};
    options.pack = pack;
    options.use_mmap = use_mmap;
    auto setup = PrepareModel(options);
    EXPECT_TRUE(setup.ok()) << setup.status();
    auto report = setup->placer->Explain();
    EXPECT_TRUE(report.ok()) << report.status();
    const uint64_t file = setup->file->tensor_bytes();
    const uint64_t weights = report->placement.segments[0].weight_bytes;
    EXPECT_GT(weights, file * 9 / 10);
    EXPECT_LT(weights, file * 13 / 10);
    for (const MemoryPool& pool : setup->devices->inventory().pools) {
      for (const MemoryUse& use : report->placement.pools) {
        if (use.name != pool.name || use.used_bytes == 0) continue;
        EXPECT_EQ(use.available_bytes, pool.available_bytes + (use_mmap ? 0 : file));
      }
    }
  };
  for (const bool pack : {true, false}) {
    for (const bool use_mmap : {true, false}) plan(pack, use_mmap);
  }
}

}  // namespace
}  // namespace trine
