// Tests the measurement of devices and the file that keeps it: of the CPU, which has all ops, and
// of a device that has products alone. No test depends on what the times are.
#include "runtime/placement/calibration.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dispatch/cost/measure_device.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "runtime/base/machine_report.h"
#include "runtime/placement/device_set.h"
#include "runtime/placement/known_costs.h"
#include "tests/model/engine_test_util.h"

namespace trine {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class CalibrationTest : public testing::Test {
 protected:
  CalibrationTest() : path_(absl::StrCat(testing::TempDir(), "/calibration.", getpid(), ".json")) {}
  ~CalibrationTest() override {
    std::filesystem::remove(path_);
    std::filesystem::remove(path_ + ".lock");
  }

  static RegistryOptions Plugins() {
    RegistryOptions plugins = TestOptions("").plugins;
    plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_PRODUCTS_PLUGIN};
    plugins.numerics = TRINE_NUMERICS_FAST;
    return plugins;
  }
  static Inventory Machine() {
    MachineOptions machine;
    machine.registry = Plugins();
    return DescribeMachine(machine);
  }

  // Measures little, and quickly.
  static MeasureOptions Quick() {
    MeasureOptions options;
    options.numerics = TRINE_NUMERICS_FAST;
    options.types = {TRINE_DTYPE_Q8_0, TRINE_DTYPE_F32};
    options.stream_bytes = 8 << 20;
    options.seconds = 0.001;
    options.rounds = 3;
    options.again = 1;
    return options;
  }
  // Returns clocks of a machine on which other processes use as many of two processors.
  static std::function<CpuTimes()> OthersUse(double processors) {
    CpuTimes times;
    times.processors = 2;
    return [times, processors]() mutable {
      times.wall_s += 10;
      times.own_s += 5;
      times.all_s += 5 + 10 * processors;
      return times;
    };
  }

  absl::StatusOr<DeviceMeasurement> Measure(const std::string& device,
                                            const MeasureOptions& options) {
    auto opened = devices_.Open(device);
    if (!opened.ok()) return opened.status();
    return MeasureDevice(*std::move(opened), options);
  }
  const InventoryDevice& Named(const std::string& name) const {
    const auto& all = devices_.inventory().devices;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& d) { return d.tier_name == name; });
    EXPECT_NE(found, all.end()) << name;
    return *found;
  }
  std::string Key(const std::string& name) const {
    return CalibrationKey(devices_.inventory(), Named(name), 1);
  }

  const std::string path_;
  DeviceSet devices_{Machine(), 1, nullptr};
};

bool NeverFalls(const CostCurve& curve) {
  const auto& points = curve.points();
  return !curve.empty() && std::is_sorted(points.begin(), points.end(),
                                          [](auto& a, auto& b) { return a.cost < b.cost; });
}

TEST_F(CalibrationTest, MeasuredCostsComeBackFromTheFile) {
  MeasureOptions options = Quick();
  double last = 0;
  options.progress = [&](double fraction) {
    EXPECT_GE(fraction, last);
    last = fraction;
    return true;
  };
  options.cpu_times = OthersUse(0);
  const auto measurement = Measure("cpu", options);
  ASSERT_TRUE(measurement.ok()) << measurement.status();
  EXPECT_DOUBLE_EQ(last, 1);
  const DeviceCosts& costs = measurement->measured.costs;
  EXPECT_THAT(MissingCosts(costs), IsEmpty());
  ASSERT_THAT(costs.matmul, SizeIs(2));
  for (const auto& [type, curve] : costs.matmul) {
    EXPECT_TRUE(NeverFalls(curve));
    EXPECT_THAT(measurement->measured.trust.spread.at(type), SizeIs(curve.points().size()));
  }
  EXPECT_TRUE(NeverFalls(costs.attention));
  EXPECT_GT(costs.bytes_per_second, 0);
  EXPECT_EQ(measurement->measured.trust.busy, "");
  Calibration calibration;
  calibration.Set("key", costs, measurement->measured.trust);
  ASSERT_TRUE(calibration.Write(path_).ok());
  const auto read = Calibration::Read(path_);
  ASSERT_TRUE(read.ok()) << read.status();
  const MeasuredCosts* back = read->Find("key");
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(read->Find("other key"), nullptr);
  EXPECT_EQ(back->costs.run_ns, costs.run_ns);
  EXPECT_EQ(back->costs.matmul.at(TRINE_DTYPE_Q8_0).At(7), costs.matmul.at(TRINE_DTYPE_Q8_0).At(7));
  EXPECT_EQ(back->costs.attention.At(3), costs.attention.At(3));
  EXPECT_EQ(back->costs.in.Of(1000), costs.in.Of(1000));
  EXPECT_EQ(back->trust.spread, measurement->measured.trust.spread);
}

TEST_F(CalibrationTest, CanBeCancelled) {
  MeasureOptions options = Quick();
  options.progress = [](double) { return false; };
  EXPECT_EQ(Measure("cpu", options).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(CalibrationTest, ADeviceOfProductsIsMeasuredAsFarAsItGoes) {
  const auto measurement = Measure("products0", Quick());
  ASSERT_TRUE(measurement.ok()) << measurement.status();
  const DeviceCosts& costs = measurement->measured.costs;
  EXPECT_GT(costs.run_ns, 0) << "a run is measured without a copy";
  EXPECT_GT(costs.matmul_ns, 0);
  ASSERT_THAT(costs.matmul, SizeIs(2));
  for (const auto& [type, curve] : costs.matmul) EXPECT_TRUE(NeverFalls(curve));
  EXPECT_GT(costs.in.call_ns, 0);
  EXPECT_GT(costs.out.call_ns, 0);
  EXPECT_THAT(MissingCosts(costs), ElementsAre("norm", "rope", "glu", "plain ops", "attention"));
  for (const char* missing : {"norm", "rope", "glu", "plain ops", "attention"}) {
    EXPECT_THAT(measurement->notes,
                Contains(AllOf(HasSubstr(absl::StrCat(missing, ": not measured, but guessed (")),
                               HasSubstr("only products run here"))));
  }
}

TEST_F(CalibrationTest, WhatIsMissingIsGuessedAndMarked) {
  const auto measurement = Measure("products0", Quick());
  ASSERT_TRUE(measurement.ok()) << measurement.status();
  Calibration calibration;
  calibration.Set(Key("products0"), measurement->measured.costs);
  ASSERT_TRUE(calibration.Write(path_).ok());
  const auto read = Calibration::Read(path_);
  ASSERT_TRUE(read.ok()) << read.status();
  const KnownCosts known = FindCosts(*read, devices_.inventory(), Named("products0"), 1);
  EXPECT_TRUE(known.measured);
  EXPECT_THAT(known.guessed, ElementsAre("norm", "rope", "glu", "plain ops", "attention"));
  EXPECT_THAT(MissingCosts(known.costs), IsEmpty());
  EXPECT_EQ(known.costs.run_ns, measurement->measured.costs.run_ns);
  EXPECT_EQ(known.costs.matmul.at(TRINE_DTYPE_F32).At(16),
            measurement->measured.costs.matmul.at(TRINE_DTYPE_F32).At(16));
  const KnownCosts cpu = FindCosts(*read, devices_.inventory(), Named("cpu"), 1);
  EXPECT_FALSE(cpu.measured);
  EXPECT_THAT(cpu.guessed, IsEmpty()) << "all of it is guessed";
}

TEST_F(CalibrationTest, ADeviceWithoutAnythingSaysWhy) {
  MeasureOptions options = Quick();
  options.numerics = TRINE_NUMERICS_EXACT;  // the device has fast products alone
  const auto measurement = Measure("products0", options);
  EXPECT_EQ(measurement.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(measurement.status().message()),
              HasSubstr("it multiplies with no type of weights: "));
}

TEST_F(CalibrationTest, ABusyMachineIsMarked) {
  MeasureOptions options = Quick();
  options.types = {TRINE_DTYPE_Q8_0};
  options.cpu_times = OthersUse(1.4);
  const auto measurement = Measure("products0", options);
  ASSERT_TRUE(measurement.ok()) << measurement.status();
  const std::string seen = "other processes used 1.4 of 2 processors";
  EXPECT_EQ(measurement->measured.trust.busy, seen);
  Calibration calibration;
  calibration.Set(Key("products0"), measurement->measured.costs, measurement->measured.trust);
  ASSERT_TRUE(calibration.AddTo(path_).ok());
  const auto read = Calibration::Read(path_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(FindCosts(*read, devices_.inventory(), Named("products0"), 1).busy, seen);
  // It stays when other devices are added.
  Calibration other;
  other.Set("other", measurement->measured.costs);
  ASSERT_TRUE(other.AddTo(path_).ok());
  EXPECT_EQ(Calibration::Read(path_)->Find(Key("products0"))->trust.busy, seen);
}

// A file of an older version lacks `spread` and `busy`. A file of a newer version may have members
// that this version does not know. The costs of both files are used.
TEST_F(CalibrationTest, OlderAndNewerFilesAreRead) {
  trine_device_info cpu{};
  cpu.tier = TRINE_TIER_CPU;
  Calibration calibration;
  calibration.Set("key", GuessCosts(cpu, 1));
  ASSERT_TRUE(calibration.Write(path_).ok());
  const auto json = nlohmann::json::parse(std::ifstream(path_));
  const auto read = [&](const nlohmann::json& text) -> MeasuredCosts {
    std::ofstream(path_) << text;
    const auto found = Calibration::Read(path_);
    EXPECT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->senseless(), 0u);
    const MeasuredCosts* costs = found->Find("key");
    EXPECT_NE(costs, nullptr);
    return costs == nullptr ? MeasuredCosts() : *costs;
  };
  auto old = json;
  old["devices"]["key"].erase("busy");
  old["devices"]["key"].erase("spread");
  EXPECT_EQ(read(old).trust.busy, "");
  EXPECT_GT(read(old).costs.run_ns, 0);
  auto newer = json;
  newer["devices"]["key"]["temperature"] = {{"chip", 71}};
  newer["devices"]["key"]["busy"] = {1, 2};
  newer["devices"]["key"]["spread"] = {{"q8_0", "much"}, {"f32", {0.1, -1}}, {"q9_9", {0.1}}};
  newer["season"] = "autumn";
  EXPECT_EQ(read(newer).trust.busy, "");
  EXPECT_THAT(read(newer).trust.spread, IsEmpty());
  auto rude = json;
  rude["devices"]["key"]["busy"] = "\x1b[2J" + std::string(5000, 'x');
  EXPECT_THAT(read(rude).trust.busy, AllOf(HasSubstr("?[2J"), Not(HasSubstr("\x1b"))));
  EXPECT_LT(read(rude).trust.busy.size(), 300u);
}

}  // namespace
}  // namespace trine
