// A fixture for models that the planner places: one CPU and four devices of one plugin, whose costs
// each test chooses.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "dispatch/cost/device_costs.h"
#include "gtest/gtest.h"
#include "runtime/base/machine_report.h"
#include "runtime/engine/model_setup.h"
#include "runtime/placement/calibration.h"
#include "runtime/placement/placer.h"
#include "tests/model/engine_test_util.h"

namespace trine {

inline constexpr int64_t kLayers = 6;
inline const std::vector<std::string> kDevices = {"cpu", "several0", "several1", "several2",
                                                  "several3"};

class PlacementTest : public testing::Test {
 protected:
  PlacementTest() : file_(Model()), calibration_(file_.path() + ".calibration") {}
  ~PlacementTest() override {
    std::filesystem::remove(calibration_);
    std::filesystem::remove(calibration_ + ".lock");
  }

  static std::vector<std::byte> Model() {
    TinyModelSpec spec;
    spec.n_layers = kLayers;
    spec.n_ctx = 512;
    return MakeTinyModel(spec).ToBytes();
  }

  EngineOptions Options() {
    EngineOptions options = TestOptions(file_.path());
    options.plugins.search.explicit_paths = {TRINE_CPU_PLUGIN, TRINE_SEVERAL_PLUGIN};
    options.threads = 1;
    options.placement.calibration = calibration_;
    options.log = [this](uint32_t, const std::string& message) { said_ += message + "\n"; };
    return options;
  }

  // Gives every device a multiple of the guessed costs of a CPU.
  void Calibrate(const std::vector<double>& factors) {
    MachineOptions machine;
    machine.registry = Options().plugins;
    const Inventory inventory = DescribeMachine(machine);
    Calibration calibration;
    for (const InventoryDevice& device : inventory.devices) {
      const auto at = std::find(kDevices.begin(), kDevices.end(), device.tier_name);
      if (at == kDevices.end()) continue;
      const double factor = factors[static_cast<size_t>(at - kDevices.begin())];
      trine_device_info cpu{};
      cpu.tier = TRINE_TIER_CPU;
      DeviceCosts costs = GuessCosts(cpu, 1);
      for (auto& [type, curve] : costs.matmul) {
        std::vector<CostCurve::Point> points = curve.points();
        for (CostCurve::Point& p : points) p.cost *= factor;
        curve = CostCurve(std::move(points));
      }
      calibration.Set(CalibrationKey(inventory, device, 1), std::move(costs));
    }
    ASSERT_TRUE(calibration.Write(calibration_).ok());
  }

  static std::string Where(const Engine& engine) {
    std::vector<LayerRange> ranges;
    for (const SegmentPlace& p : engine.model()->places()) {
      ranges.push_back({p.span, p.device_name});
    }
    return PlacementText(ranges);
  }

  TempFile file_;
  std::string calibration_;
  std::string said_;
};

inline const std::vector<int32_t> kPrompt = {72, 101, 108, 108, 111, 44,
                                             32, 119, 111, 114, 108, 100};

}  // namespace trine
